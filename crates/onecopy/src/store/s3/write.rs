//! Writing: whole objects, uploads in parts, copies within the endpoint, deletes.

use bytes::Bytes;
use http::{HeaderMap, Method};

use super::super::checksum::{Algorithm, Sum};
use super::super::http1::{Answer, Failure};
use super::super::origin::{self, Origin};
use super::super::retry::Retry;
use super::super::{
    Attributes, BoxFuture, Checksum, CopySource, ETag, Key, Object, Part, Refused, Store, Stored,
    Upload, Writer,
};
use super::asked::Asked;
use super::asking::{Ask, With};
use super::proof::{self, Proof};
use super::{MAX_LISTING, S3Store, address, refusal, version_query, write_xml};
use crate::buffer::Slice;
use crate::error::{ErrorKind, Result};
use crate::ledger::OpenHop;

/// The memory of a slice as a request body: shared, not copied.
struct Payload(Slice);

impl AsRef<[u8]> for Payload {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl S3Store {
    /// How bodies are vouched for: over plain HTTP by their SHA-256 in the signature, as with the AWS tools; at AWS by a
    /// CRC64NVME that the service checks and keeps. Other stores behind TLS may not know the header, and TLS protects
    /// the bytes on the way.
    fn proof(&self) -> Proof {
        if self.account.addressing().endpoint.is_none() {
            Proof::Crc64Nvme
        } else if self.home.place().address.endpoint.is_tls || self.account.signer().is_none() {
            Proof::Tls
        } else {
            Proof::Sha256
        }
    }

    async fn ask(&self, asked: &Asked<'_>) -> Result<Answer, Failure> {
        let (path, with) = if asked.key.is_empty() {
            (String::new(), With::Session)
        } else {
            let path = format!("/{}", address::encode_key(asked.key));
            (path, With::Object)
        };
        let mut ask = Ask::new(asked.method.clone(), path, asked.query.clone(), with);
        ask.headers = asked.headers.clone();
        ask.body = asked.body.clone();
        let ledger = asked.hop.map(|hop| &**hop.ledger());
        let nothing = HeaderMap::new();
        let sent = proof::busy(self.exchange(&ask, &nothing, ledger)).await;
        let (answer, busy) = (sent.0?, sent.1);
        if let Some(hop) = asked.hop {
            hop.moved(asked.body.len(), busy.saturating_sub(answer.sealed.busy));
            answer.sealed.count(hop);
        }
        if matches!(answer.head.status, 200 | 204) {
            return Ok(answer);
        }
        let mut failure = self.refused(&asked.method, answer).await;
        if failure.cause == "denied" && self.account.signer().is_some() {
            let bucket = &self.bucket;
            failure.help = Some(format!(
                "grant s3:PutObject, s3:AbortMultipartUpload and s3:DeleteObject on {bucket}/*"
            ));
        }
        Err(failure)
    }

    /// Asks until it works or is final, and reads the text of the answer: a success may still carry an error.
    pub(super) async fn text_of(
        &self,
        doing: &str,
        object: &Object,
        asked: &Asked<'_>,
    ) -> Result<(HeaderMap, Vec<u8>)> {
        self.told_or(asked)
            .await
            .map_err(|failure| failure.into_error(doing, &*object.url))
    }

    async fn told_or(&self, asked: &Asked<'_>) -> Result<(HeaderMap, Vec<u8>), Failure> {
        let client = self.account.client();
        let ledger = asked.hop.map_or(client.ledger(), |hop| hop.ledger());
        let mut retry = Retry::counted(client, ledger);
        loop {
            match self.told_once(asked).await {
                Ok(told) => {
                    retry.succeeded();
                    return Ok(told);
                }
                Err(failure) => retry.after(failure).await?,
            }
        }
    }

    async fn told_once(&self, asked: &Asked<'_>) -> Result<(HeaderMap, Vec<u8>), Failure> {
        let answer = self.ask(asked).await?;
        let (told, way) = (refusal::Told::of(&answer.head), answer.way());
        let headers = answer.head.headers.clone();
        let text = answer.body.collect(MAX_LISTING).await?;
        // S3 begins the answer to a copy or a completion before it knows how that ends. A page of a proxy may pass, too.
        if let Err(mut failure) = self.check_text(told, &text, &asked.method) {
            failure.is_worth_retrying |= failure.kind == ErrorKind::Corrupt;
            return Err(failure.on(&way));
        }
        if let Some(root) = asked.root {
            write_xml::check_root(&text, root).map_err(|failure| failure.on(&way))?;
        }
        Ok((headers, text))
    }

    /// A request with a payload, vouched for.
    fn vouched<'a>(
        &self,
        mut asked: Asked<'a>,
        hop: &'a OpenHop,
        body: Slice,
    ) -> (Asked<'a>, Option<Sum>) {
        let proof = self.proof();
        let crc64nvme = (proof == Proof::Crc64Nvme).then(|| Sum::of(Algorithm::Crc64Nvme, &body));
        match (proof, &crc64nvme) {
            (Proof::Sha256, _) => asked.set("x-amz-content-sha256", &proof::sha256(&body)),
            (_, Some(crc)) => asked.set("x-amz-checksum-crc64nvme", &crc.base64()),
            _ => {}
        }
        asked.body = Bytes::from_owner(Payload(body));
        asked.hop = Some(hop);
        (asked, crc64nvme)
    }

    /// Says what is to be copied: the object, its version, and the key that it is encrypted with, where there is one.
    fn name_source(&self, asked: &mut Asked<'_>, source: &CopySource) -> Result<(), Failure> {
        let object = &source.object;
        let mut place = format!(
            "/{}/{}",
            source.bucket,
            address::encode_key(object.key.as_bytes())
        );
        if let Some(version) = &object.version {
            place = format!("{place}?{}", version_query(version));
        }
        asked.set("x-amz-copy-source", &place);
        if let Some(tag) = origin::if_match(object) {
            asked.headers.insert("x-amz-copy-source-if-match", tag);
        }
        if let Some(key) = self.account.customer_key() {
            key.add_for_source(&mut asked.headers, &self.home.place().address.endpoint)?;
        }
        Ok(())
    }
}

fn stored(headers: &HeaderMap, text: &[u8]) -> Stored {
    let header = headers.get("etag").and_then(|value| value.to_str().ok());
    let told = header.map(str::to_owned).or_else(|| write_xml::etag(text));
    Stored {
        etag: told.map(|text| ETag(text.as_str().into())),
    }
}

fn part(
    number: u32,
    len_bytes: u64,
    stored: Stored,
    crc64nvme: Option<Sum>,
) -> Result<Part, Failure> {
    let etag = stored
        .etag
        .ok_or_else(|| Failure::corrupt("the store took a part and gave it no ETag"))?;
    Ok(Part {
        number,
        etag,
        len_bytes,
        crc64nvme,
    })
}

fn upload_query(upload: &Upload, number: Option<u32>) -> String {
    let id = address::encode_value(upload.id.as_bytes());
    match number {
        Some(number) => format!("partNumber={number}&uploadId={id}"),
        None => format!("uploadId={id}"),
    }
}

impl Writer for S3Store {
    fn bucket(&self) -> &str {
        &self.bucket
    }

    fn object(&self, key: &[u8]) -> Object {
        Self::object(self, key, None)
    }

    fn put<'a>(
        &'a self,
        hop: &'a OpenHop,
        object: &'a Object,
        body: Slice,
        attributes: &'a Attributes,
    ) -> BoxFuture<'a, Result<Stored>> {
        Box::pin(async move {
            let asked = Asked::new(Method::PUT, object.key.as_bytes(), "");
            let (asked, _) = self.vouched(asked.with_attributes(attributes), hop, body);
            let (headers, text) = self.text_of("write", object, &asked).await?;
            Ok(stored(&headers, &text))
        })
    }

    fn begin<'a>(
        &'a self,
        object: &'a Object,
        attributes: &'a Attributes,
    ) -> BoxFuture<'a, Result<Upload>> {
        Box::pin(async move {
            let asked = Asked::new(Method::POST, object.key.as_bytes(), "uploads=");
            let mut asked = asked.with_attributes(attributes);
            if self.proof() == Proof::Crc64Nvme {
                asked.set("x-amz-checksum-algorithm", "CRC64NVME");
                asked.set("x-amz-checksum-type", "FULL_OBJECT");
            }
            let (_, text) = self.text_of("begin to write", object, &asked).await?;
            let id = write_xml::upload_id(&text).ok_or_else(|| {
                Failure::corrupt("the store began an upload and did not name it")
                    .into_error("begin to write", &*object.url)
            })?;
            Ok(Upload {
                object: object.clone(),
                id: id.as_str().into(),
            })
        })
    }

    fn put_part<'a>(
        &'a self,
        hop: &'a OpenHop,
        upload: &'a Upload,
        number: u32,
        body: Slice,
    ) -> BoxFuture<'a, Result<Part>> {
        Box::pin(async move {
            let (object, len) = (&upload.object, body.len() as u64);
            let query = upload_query(upload, Some(number));
            let asked = Asked::new(Method::PUT, object.key.as_bytes(), query);
            let (asked, crc) = self.vouched(asked, hop, body);
            let doing = format!("write part {number} of");
            let (headers, text) = self.text_of(&doing, object, &asked).await?;
            part(number, len, stored(&headers, &text), crc)
                .map_err(|failure| failure.into_error(doing, &*object.url))
        })
    }

    fn copy_part<'a>(
        &'a self,
        upload: &'a Upload,
        number: u32,
        source: &'a CopySource,
        (from, to): (u64, u64),
    ) -> BoxFuture<'a, Result<Part>> {
        Box::pin(async move {
            let object = &upload.object;
            let query = upload_query(upload, Some(number));
            let asked = Asked::new(Method::PUT, object.key.as_bytes(), query);
            let mut asked = asked.told_by("CopyPartResult");
            let doing = format!("copy part {number} of");
            self.name_source(&mut asked, source)
                .map_err(|failure| failure.into_error(&*doing, &*object.url))?;
            let last = to.saturating_sub(1);
            asked.set("x-amz-copy-source-range", &format!("bytes={from}-{last}"));
            let (_, text) = self.text_of(&doing, object, &asked).await?;
            part(number, to - from, stored(&HeaderMap::new(), &text), None)
                .map_err(|failure| failure.into_error(doing, &*object.url))
        })
    }

    fn complete<'a>(
        &'a self,
        upload: &'a Upload,
        parts: &'a [Part],
    ) -> BoxFuture<'a, Result<Stored>> {
        Box::pin(async move {
            let object = &upload.object;
            let asked = Asked::new(
                Method::POST,
                object.key.as_bytes(),
                upload_query(upload, None),
            );
            let mut asked = asked
                .with_xml(write_xml::complete(parts))
                .told_by("CompleteMultipartUploadResult");
            if let Some(crc) = proof::whole(parts) {
                asked.set("x-amz-checksum-crc64nvme", &crc.base64());
                asked.set("x-amz-checksum-type", "FULL_OBJECT");
            }
            match self.told_or(&asked).await {
                Ok((headers, text)) => Ok(stored(&headers, &text)),
                Err(failure) => match self.is_there(object, parts).await {
                    // The completion went through and only its answer was lost: asked again, the store knows no
                    // upload any more.
                    Some(stored) if failure.why.contains("NoSuchUpload") => Ok(stored),
                    _ => Err(failure.into_error("complete", &*object.url)),
                },
            }
        })
    }

    fn abort<'a>(&'a self, upload: &'a Upload) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let object = &upload.object;
            let query = upload_query(upload, None);
            let asked = Asked::new(Method::DELETE, object.key.as_bytes(), query);
            match self.told_or(&asked).await {
                Ok(_) => Ok(()),
                Err(failure) if failure.why.contains("NoSuchUpload") => Ok(()),
                Err(failure) => Err(failure.into_error("give up the upload of", &*object.url)),
            }
        })
    }

    fn copy<'a>(
        &'a self,
        source: &'a CopySource,
        object: &'a Object,
        attributes: &'a Attributes,
    ) -> BoxFuture<'a, Result<Stored>> {
        Box::pin(async move {
            let asked = Asked::new(Method::PUT, object.key.as_bytes(), "");
            let asked = asked.told_by("CopyObjectResult");
            let mut asked = asked.with_attributes(attributes);
            if attributes.iter().next().is_some() {
                asked.set("x-amz-metadata-directive", "REPLACE");
            }
            self.name_source(&mut asked, source)
                .map_err(|failure| failure.into_error("copy to", &*object.url))?;
            let (_, text) = self.text_of("copy to", object, &asked).await?;
            Ok(stored(&HeaderMap::new(), &text))
        })
    }

    fn attributes<'a>(&'a self, object: &'a Object) -> BoxFuture<'a, Result<Attributes>> {
        Box::pin(async move {
            let asked = Asked::look_up(object);
            let (headers, _) = self.text_of("look up", object, &asked).await?;
            let mut told = Attributes::default();
            for (name, value) in &headers {
                let name = name.as_str();
                if let Ok(value) = value.to_str()
                    && (KEPT.contains(&name) || name.starts_with("x-amz-meta-"))
                {
                    told.set(name, value)?;
                }
            }
            Ok(told)
        })
    }

    fn checksum<'a>(&'a self, object: &'a Object) -> BoxFuture<'a, Result<Option<Checksum>>> {
        Box::pin(async move {
            let mut asked = Asked::look_up(object);
            asked.set("x-amz-checksum-mode", "ENABLED");
            let (headers, _) = self.text_of("look up", object, &asked).await?;
            Ok(Checksum::of(&headers))
        })
    }

    fn delete<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Refused>>> {
        Box::pin(self.delete_keys(keys))
    }
}

/// What is told of an object beside its bytes, and is not of the store's own making.
const KEPT: [&str; 6] = [
    "cache-control",
    "content-disposition",
    "content-encoding",
    "content-language",
    "content-type",
    "x-amz-website-redirect-location",
];

impl S3Store {
    /// Whether the object is there with the length that these parts have.
    async fn is_there(&self, object: &Object, parts: &[Part]) -> Option<Stored> {
        let found = Store::head(self, object).await.ok()?;
        let len: u64 = parts.iter().map(|part| part.len_bytes).sum();
        (found.len_bytes == Some(len)).then_some(Stored { etag: found.etag })
    }
}
