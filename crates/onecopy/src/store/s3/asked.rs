//! A request that writes, before it is signed.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method};

use super::super::{Attributes, Object};
use super::version_query;
use crate::ledger::OpenHop;

/// A request that writes.
pub(super) struct Asked<'a> {
    pub(super) method: Method,
    pub(super) key: &'a [u8],
    pub(super) query: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    /// Where the body is payload: the hop that counts it.
    pub(super) hop: Option<&'a OpenHop>,
    /// The root of the document that tells a success, where one does: a 200 with anything else is none.
    pub(super) root: Option<&'static str>,
}

impl<'a> Asked<'a> {
    pub(super) fn new(method: Method, key: &'a [u8], query: impl Into<String>) -> Self {
        Self {
            method,
            key,
            query: query.into(),
            headers: HeaderMap::new(),
            body: Bytes::new(),
            hop: None,
            root: None,
        }
    }

    /// The question for what is told of an object, of the version that is meant.
    pub(super) fn look_up(object: &'a Object) -> Self {
        let version = object.version.as_deref();
        let query = version.map_or_else(String::new, version_query);
        Self::new(Method::HEAD, object.key.as_bytes(), query)
    }

    pub(super) fn with_attributes(mut self, attributes: &Attributes) -> Self {
        for (name, value) in attributes.iter() {
            self.set(name, value);
        }
        self
    }

    pub(super) fn told_by(mut self, root: &'static str) -> Self {
        self.root = Some(root);
        self
    }

    pub(super) fn with_xml(mut self, xml: String) -> Self {
        self.set("content-type", "application/xml");
        self.body = Bytes::from(xml);
        self
    }

    /// Sets a header; what cannot stand in one was refused by [`Attributes::set`] or never comes up.
    pub(super) fn set(&mut self, name: &str, value: &str) {
        let name = HeaderName::from_bytes(name.as_bytes());
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_str(value)) {
            self.headers.insert(name, value);
        }
    }
}
