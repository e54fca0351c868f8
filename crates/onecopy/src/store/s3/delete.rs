//! Deleting many keys by one request.

use http::Method;

use super::super::http1::Failure;
use super::super::{Key, Refused};
use super::asked::Asked;
use super::{S3Store, proof, write_xml};
use crate::error::{ErrorKind, Result};

impl S3Store {
    pub(super) async fn delete_keys(&self, keys: &[Key]) -> Result<Vec<Refused>> {
        let (in_xml, odd): (Vec<&Key>, Vec<&Key>) =
            keys.iter().partition(|key| write_xml::can_hold(key));
        let mut refused = Vec::new();
        if !in_xml.is_empty() {
            let xml = write_xml::delete(&in_xml);
            let digest = proof::md5(xml.as_bytes());
            let asked = Asked::new(Method::POST, b"", "delete=").told_by("DeleteResult");
            let mut asked = asked.with_xml(xml);
            asked.set("content-md5", &digest);
            let all = Self::object(self, in_xml[0].as_bytes(), None);
            let (_, text) = self.text_of("delete", &all, &asked).await?;
            let kept = write_xml::not_deleted(&text).ok_or_else(|| {
                Failure::corrupt("the store kept a key and did not say which")
                    .into_error("delete", &*all.url)
            })?;
            for (key, code) in kept {
                let why = format!("the store kept it ({code})");
                let failure = Failure::new(ErrorKind::Denied, "not_deleted", why);
                let object = Self::object(self, key.as_bytes(), None);
                let help = format!("grant s3:DeleteObject on {}/*", self.bucket);
                let error = failure.with_help(help).into_error("delete", &*object.url);
                refused.push(Refused { key, error });
            }
        }
        for key in odd {
            let object = Self::object(self, key.as_bytes(), None);
            let asked = Asked::new(Method::DELETE, key.as_bytes(), "");
            if let Err(error) = self.text_of("delete", &object, &asked).await {
                let key = key.clone();
                refused.push(Refused { key, error });
            }
        }
        Ok(refused)
    }
}
