//! List Blobs: the question and the answer.

use super::super::http1::Failure;
use super::super::s3::encode_value;
use super::super::{ETag, Key, ListPage, ListRequest, Object, dates, xml};

/// The query of a listing.
pub(super) fn query(request: &ListRequest) -> String {
    let mut query = "restype=container&comp=list".to_owned();
    if request.is_folded {
        query.push_str("&delimiter=%2F");
    }
    if let Some(page) = &request.page {
        query.push_str("&marker=");
        query.push_str(&encode_value(page.as_bytes()));
    }
    if !request.prefix.as_bytes().is_empty() {
        query.push_str("&prefix=");
        query.push_str(&encode_value(request.prefix.as_bytes()));
    }
    query
}

/// A blob, as far as it was read.
#[derive(Default)]
struct Pending {
    key: Option<Key>,
    /// Whether the name that comes next is percent-encoded: one that XML cannot hold.
    is_encoded: bool,
    is_folder: bool,
    len_bytes: Option<u64>,
    etag: Option<ETag>,
    modified_unix: Option<i64>,
}

impl Pending {
    /// Takes in what stands at `place` within it.
    fn take(&mut self, place: &[&str], text: &str) -> Result<(), String> {
        match place {
            ["Name", "@Encoded"] => self.is_encoded = text == "true",
            ["Name"] => self.key = Some(key(text, self.is_encoded)),
            ["Properties", "Content-Length"] => {
                let size = text.trim().parse();
                self.len_bytes = Some(size.map_err(|_error| format!("the size {text:?}"))?);
            }
            ["Properties", "Etag" | "ETag"] if !text.is_empty() => self.etag = Some(etag(text)),
            ["Properties", "Last-Modified"] => {
                self.modified_unix = dates::from_http(text.trim());
            }
            ["Properties", "ResourceType"] => self.is_folder = text == "directory",
            _ => {}
        }
        Ok(())
    }
}

/// Reads one page. `url` says how an object is called.
pub(super) fn read_page(
    text: &[u8],
    request: &ListRequest,
    url: impl Fn(&Key) -> String,
) -> Result<ListPage, Failure> {
    let bad = |why: String| {
        Failure::corrupt(format!("the answer is no listing of a container: {why}"))
            .with_help("does the endpoint speak Azure Blob Storage (`endpoint_url`)?")
    };
    // It may begin with a byte order mark.
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let leaves = xml::leaves(text).map_err(bad)?;
    let root = leaves.last().and_then(|(path, _)| path.first());
    if root.is_none_or(|root| root != "EnumerationResults") {
        return Err(bad("it has another root".to_owned()));
    }
    let mut page = ListPage::default();
    let mut blob = Pending::default();
    for (path, text) in &leaves {
        let names: Vec<&str> = path[1..].iter().map(String::as_str).collect();
        match names.as_slice() {
            ["NextMarker"] if !text.is_empty() => page.next = Some(text.clone()),
            ["Blobs", "Blob"] => {
                let done = std::mem::take(&mut blob);
                let key = done
                    .key
                    .ok_or_else(|| bad("a blob without a name".into()))?;
                // Where names are a real tree, its folders are listed among the blobs; they hold nothing of their own.
                if !done.is_folder {
                    page.objects.push(Object {
                        url: url(&key).into(),
                        key,
                        version: None,
                        len_bytes: done.len_bytes,
                        etag: done.etag,
                        modified_unix: done.modified_unix,
                    });
                }
            }
            ["Blobs", "BlobPrefix"] => {
                let done = std::mem::take(&mut blob);
                page.prefixes.extend(done.key);
            }
            ["Blobs", "Blob", place @ ..] => blob.take(place, text).map_err(bad)?,
            ["Blobs", "BlobPrefix", place @ ..] if place.first() == Some(&"Name") => {
                blob.take(place, text).map_err(bad)?;
            }
            _ => {}
        }
    }
    if page.next.is_some() && page.next == request.page {
        return Err(bad("its next page is this page again".to_owned()));
    }
    Ok(page)
}

/// A tag as answers have it, and as conditions want it: listings leave its quotes out.
fn etag(text: &str) -> ETag {
    if text.ends_with('"') {
        return ETag(text.into());
    }
    ETag(format!("\"{text}\"").into())
}

fn key(text: &str, is_encoded: bool) -> Key {
    if is_encoded {
        return Key::new(percent_encoding::percent_decode_str(text).collect::<Vec<u8>>());
    }
    Key::new(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(text: &str, marker: Option<&str>) -> Result<ListPage, Failure> {
        let request = ListRequest {
            prefix: Key::new(*b""),
            is_folded: false,
            page: marker.map(str::to_owned),
        };
        read_page(text.as_bytes(), &request, |key| format!("az://c/{key}"))
    }

    #[test]
    fn names_come_back_byte_for_byte() {
        let text = "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<EnumerationResults ServiceEndpoint=\"https://a/\" ContainerName=\"c\">\
            <Blobs><Blob><Name> a&amp;b+%20ü </Name><Properties><Last-Modified>Sun, 06 Nov 1994 08:49:37 GMT</Last-Modified>\
            <Etag>0x8D1</Etag><Content-Length>7</Content-Length><Content-MD5 /></Properties></Blob>\
            <Blob><Name Encoded=\"true\">x%EF%BF%BF%20y</Name><Properties><Content-Length>0</Content-Length></Properties></Blob>\
            <Blob><Name>dir</Name><Properties><ResourceType>directory</ResourceType><Content-Length>0</Content-Length></Properties></Blob>\
            <BlobPrefix><Name>p/</Name></BlobPrefix></Blobs><NextMarker>2!a+/=</NextMarker></EnumerationResults>";
        let page = page(text, None).unwrap();
        let names: Vec<&[u8]> = page.objects.iter().map(|o| o.key.as_bytes()).collect();
        assert_eq!(names, [" a&b+%20ü ".as_bytes(), "x\u{ffff} y".as_bytes()]);
        let first = &page.objects[0];
        assert_eq!(first.etag, Some(ETag("\"0x8D1\"".into())));
        assert_eq!(etag("\"0x8D1\""), etag("0x8D1"));
        assert_eq!(
            (first.len_bytes, first.modified_unix),
            (Some(7), Some(784_111_777))
        );
        assert_eq!(page.prefixes[0].as_bytes(), b"p/");
        assert_eq!(page.next.as_deref(), Some("2!a+/="));
    }

    #[test]
    fn pages_end_and_never_go_in_a_circle() {
        let text =
            |marker: &str| format!("<EnumerationResults><Blobs/>{marker}</EnumerationResults>");
        for marker in ["", "<NextMarker/>", "<NextMarker></NextMarker>"] {
            assert_eq!(page(&text(marker), Some("a")).unwrap().next, None);
        }
        let again = page(&text("<NextMarker>a</NextMarker>"), Some("a"));
        assert_eq!(again.unwrap_err().cause, "bad_answer");
    }

    #[test]
    fn the_marker_and_the_prefix_are_encoded_in_the_question() {
        let request = ListRequest {
            prefix: Key::new(*b"a b/"),
            is_folded: true,
            page: Some("2!x+/=".to_owned()),
        };
        assert_eq!(
            query(&request),
            "restype=container&comp=list&delimiter=%2F&marker=2%21x%2B%2F%3D&prefix=a%20b%2F"
        );
    }

    #[test]
    fn what_is_no_listing_is_an_error() {
        for text in [
            "",
            "<html><body>hi</body></html>",
            "<EnumerationResults>",
            "{}",
            "<EnumerationResults><Blobs><Blob></Blob></Blobs></EnumerationResults>",
            "<EnumerationResults><Blobs><Blob><Name>a</Name><Properties><Content-Length>-1</Content-Length>\
             </Properties></Blob></Blobs></EnumerationResults>",
        ] {
            assert_eq!(page(text, None).unwrap_err().cause, "bad_answer", "{text}");
        }
    }

    #[test]
    fn no_damage_makes_it_panic() {
        let text = "<EnumerationResults a=\"b\"><Blobs><Blob><Name Encoded=\"true\">a%20b</Name><Properties>\
            <Content-Length>1</Content-Length><Etag/></Properties></Blob></Blobs><NextMarker>x</NextMarker></EnumerationResults>";
        for at in 0..text.len() {
            for byte in [0, b'<', b'>', b'/', b'&', b'"', b'%', b' ', 0xff] {
                let mut damaged = text.as_bytes().to_owned();
                damaged[at] = byte;
                let request = ListRequest {
                    prefix: Key::new(*b""),
                    is_folded: false,
                    page: None,
                };
                let _page = read_page(&damaged, &request, |_| String::new());
                let _cut = read_page(&damaged[..at], &request, |_| String::new());
            }
        }
    }
}
