//! The documents that writing sends and gets back.

use std::fmt::Write;

use quick_xml::escape::escape;

use super::super::http1::Failure;
use super::super::{Key, Part};
use super::list::leaves;

/// The list of parts that are to be put together.
pub(super) fn complete(parts: &[Part]) -> String {
    let mut xml = String::from("<CompleteMultipartUpload>");
    for part in parts {
        let tag = escape(&*part.etag.0);
        // Writing to a String cannot fail.
        let _always_ok = write!(
            xml,
            "<Part><PartNumber>{}</PartNumber><ETag>{tag}</ETag>",
            part.number
        );
        if let Some(crc) = &part.crc64nvme {
            let crc = crc.base64();
            let _always_ok = write!(xml, "<ChecksumCRC64NVME>{crc}</ChecksumCRC64NVME>");
        }
        xml.push_str("</Part>");
    }
    xml.push_str("</CompleteMultipartUpload>");
    xml
}

/// Whether XML can hold the key: text without control characters. (A carriage return or a line feed would come out as
/// something else.)
pub(super) fn can_hold(key: &Key) -> bool {
    let is_fine = |c: char| !c.is_control() && !matches!(c, '\u{fffe}' | '\u{ffff}');
    std::str::from_utf8(key.as_bytes()).is_ok_and(|text| text.chars().all(is_fine))
}

/// The list of keys that are to be deleted; only what failed is to be told.
pub(super) fn delete(keys: &[&Key]) -> String {
    let mut xml = String::from("<Delete>");
    for key in keys {
        let key = String::from_utf8_lossy(key.as_bytes());
        let _always_ok = write!(xml, "<Object><Key>{}</Key></Object>", escape(&*key));
    }
    xml.push_str("<Quiet>true</Quiet></Delete>");
    xml
}

/// An answer is a success only where it is a whole document with this root: a 200 may also come from a proxy with a page
/// of its own, empty, or cut off. That is worth another try.
pub(super) fn check_root(text: &[u8], root: &str) -> Result<(), Failure> {
    let why = match leaves(text.trim_ascii_start()) {
        Err(why) => why,
        Ok(leaves) if leaves.is_empty() => "it is no XML".to_owned(),
        Ok(leaves)
            if leaves
                .iter()
                .all(|(path, _)| path.first().is_some_and(|is| is == root)) =>
        {
            return Ok(());
        }
        Ok(_) => "it has another root".to_owned(),
    };
    let mut failure = Failure::corrupt(format!("the answer is no {root}: {why}"));
    failure.is_worth_retrying = true;
    Err(failure.with_help("does the endpoint speak S3, or is there a proxy between?"))
}

/// The keys that were not deleted, and the codes that say why; none where a key that was not is not named.
pub(super) fn not_deleted(text: &[u8]) -> Option<Vec<(Key, String)>> {
    let mut found = Vec::new();
    let (mut key, mut code) = (None, String::new());
    for (path, text) in leaves(text.trim_ascii_start()).unwrap_or_default() {
        match path.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            ["DeleteResult", "Error", "Key"] => key = Some(Key::new(text.as_bytes())),
            ["DeleteResult", "Error", "Code"] => code = text,
            ["DeleteResult", "Error"] => {
                found.push((key.take()?, std::mem::take(&mut code)));
            }
            _ => {}
        }
    }
    Some(found)
}

/// The id of an upload that was begun.
pub(super) fn upload_id(text: &[u8]) -> Option<String> {
    second(text, "UploadId").filter(|id| !id.is_empty())
}

/// The ETag of a copy or of a completed upload.
pub(super) fn etag(text: &[u8]) -> Option<String> {
    second(text, "ETag").filter(|tag| !tag.is_empty())
}

/// The text of the element `name` right below the root, whatever that is called.
fn second(text: &[u8], name: &str) -> Option<String> {
    let leaves = leaves(text.trim_ascii_start()).ok()?;
    let found = leaves
        .into_iter()
        .find(|(path, _)| path.len() == 2 && path[1] == name);
    found.map(|(_, text)| text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::ETag;

    #[test]
    fn documents_escape_what_they_hold() {
        let part = Part {
            number: 7,
            etag: ETag("\"a<b\"".into()),
            len_bytes: 1,
            crc64nvme: None,
        };
        assert_eq!(
            complete(&[part]),
            "<CompleteMultipartUpload><Part><PartNumber>7</PartNumber>\
             <ETag>&quot;a&lt;b&quot;</ETag></Part></CompleteMultipartUpload>"
        );
        let keys = [&Key::new(*b"a&b"), &Key::new(*b" c ")];
        assert_eq!(
            delete(&keys),
            "<Delete><Object><Key>a&amp;b</Key></Object><Object><Key> c </Key></Object>\
             <Quiet>true</Quiet></Delete>"
        );
    }

    #[test]
    fn keys_that_xml_would_change_are_told() {
        for (key, is_held) in [
            (&b"a b/\xc3\xbc"[..], true),
            (b"new\nline", false),
            (b"cr\r", false),
            (b"\x01", false),
            (b"\xff", false),
            (b"", true),
        ] {
            assert_eq!(can_hold(&Key::new(key)), is_held, "{key:?}");
        }
    }

    #[test]
    fn only_a_whole_document_with_the_right_root_is_a_success() {
        for (text, is_success) in [
            (&b"<DeleteResult/>"[..], true),
            (
                b"  \n<?xml version=\"1.0\"?><DeleteResult xmlns=\"x\"></DeleteResult>",
                true,
            ),
            (
                b"<DeleteResult><Error><Key>k</Key></Error></DeleteResult>\n",
                true,
            ),
            (b"", false),
            (b"  ", false),
            (b"OK", false),
            (b"{}", false),
            (b"\xff", false),
            (b"<html><body>Welcome</body></html>", false),
            (b"<!doctype html><p>x", false),
            (b"<DeleteResult>", false),
            (b"<DeleteResult><Error><Key>k</Ke", false),
            (b"<DeleteResult/><html/>", false),
            (b"<R><DeleteResult/></R>", false),
        ] {
            let checked = check_root(text, "DeleteResult");
            assert_eq!(checked.is_ok(), is_success, "{text:?}");
        }
        let failure = check_root(b"", "DeleteResult").unwrap_err();
        assert!(failure.is_worth_retrying);
    }

    #[test]
    fn answers_are_read() {
        let text = b"<?xml version=\"1.0\"?>\n<R xmlns=\"x\"><UploadId>a+/=</UploadId><ETag>&quot;t&quot;</ETag></R>";
        assert_eq!(upload_id(text).as_deref(), Some("a+/="));
        assert_eq!(etag(text).as_deref(), Some("\"t\""));
        assert_eq!(upload_id(b"<R><UploadId/></R>"), None);
        assert_eq!(etag(b"no xml"), None);
        let text = b"<DeleteResult><Error><Key>a&amp;b</Key><Code>AccessDenied</Code></Error>
            <Error><Code>X</Code><Key>c</Key></Error></DeleteResult>";
        let kept = not_deleted(text).unwrap();
        assert_eq!(kept[0], (Key::new(*b"a&b"), "AccessDenied".to_owned()));
        assert_eq!(kept[1], (Key::new(*b"c"), "X".to_owned()));
        let unnamed = b"<DeleteResult><Error><Code>X</Code></Error></DeleteResult>";
        assert_eq!(not_deleted(unnamed), None);
    }
}
