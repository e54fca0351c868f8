//! What a stand-in holds, and pages of it.

use std::collections::BTreeMap;

use bytes::Bytes;

/// An object.
#[derive(Debug, Clone)]
pub(crate) struct Stored {
    pub(crate) bytes: Bytes,
    /// With its quotes.
    pub(crate) etag: String,
}

/// Objects by bucket and key, in byte order.
pub(crate) type Objects = BTreeMap<(String, String), Stored>;

/// One page of a listing.
#[derive(Debug, Default)]
pub(crate) struct Page {
    pub(crate) objects: Vec<(String, Stored)>,
    pub(crate) prefixes: Vec<String>,
    /// Where the next page begins.
    pub(crate) next: Option<String>,
}

/// A marker with characters in it that break where they are not encoded.
fn marker(place: &str) -> String {
    let digits: Vec<String> = place.bytes().map(|byte| format!("{byte:02x}")).collect();
    format!("2!+/{}=", digits.concat())
}

fn place(marker: &str) -> Option<String> {
    let digits = marker.strip_prefix("2!+/")?.strip_suffix('=')?;
    let bytes = (0..digits.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok());
    String::from_utf8(bytes.collect::<Option<Vec<u8>>>()?).ok()
}

/// Lists what begins with `prefix`, from `from` on; none for a marker that was not given out.
pub(crate) fn page(
    objects: &Objects,
    bucket: &str,
    prefix: &str,
    delimiter: Option<&str>,
    (from, len): (Option<&str>, usize),
) -> Option<Page> {
    let from = match from {
        Some(from) => Some(place(from)?),
        None => None,
    };
    let mut page = Page::default();
    for ((_, key), stored) in objects
        .iter()
        .filter(|((of, key), _)| of == bucket && key.starts_with(prefix))
    {
        let fold = delimiter.and_then(|delimiter| {
            let at = key[prefix.len()..].find(delimiter)?;
            key.get(..prefix.len() + at + delimiter.len())
        });
        let name = fold.unwrap_or(key);
        if from.as_deref().is_some_and(|from| name < from)
            || page.prefixes.last().is_some_and(|last| last == name)
        {
            continue;
        }
        if page.objects.len() + page.prefixes.len() == len {
            page.next = Some(marker(name));
            break;
        }
        match fold {
            Some(fold) => page.prefixes.push(fold.to_owned()),
            None => page.objects.push((key.clone(), stored.clone())),
        }
    }
    Some(page)
}
