//! Documents that stores send, as a list of their elements.

use quick_xml::Reader;
use quick_xml::events::Event;

/// One element of a document: where it stands, and its text.
pub(super) type Leaf = (Vec<String>, String);

/// Every element with text, in order: the names from the root down, and the text exactly as it stands.
/// Namespaces mean nothing here, and attributes nothing but `Encoded`: it stands as an element `@Encoded` in front of the one
/// that bears it.
pub(super) fn leaves(text: &[u8]) -> Result<Vec<Leaf>, String> {
    let text = std::str::from_utf8(text).map_err(|error| error.to_string())?;
    let mut reader = Reader::from_str(text);
    let mut path: Vec<String> = Vec::new();
    let mut leaves = Vec::new();
    let mut inner = String::new();
    loop {
        match reader.read_event().map_err(|error| error.to_string())? {
            Event::Start(element) => {
                path.push(element.local_name().as_ref().to_owned());
                if path.len() > 16 {
                    return Err("elements nest too deep".to_owned());
                }
                inner.clear();
                if let Ok(Some(encoded)) = element.try_get_attribute("Encoded") {
                    let mut path = path.clone();
                    path.push("@Encoded".to_owned());
                    leaves.push((path, encoded.value.clone().into_owned()));
                }
            }
            Event::Text(text) => inner.push_str(&text),
            Event::CData(text) => inner.push_str(&text),
            Event::GeneralRef(reference) => inner.push(resolve(&reference)?),
            Event::End(_) => {
                leaves.push((path.clone(), std::mem::take(&mut inner)));
                path.pop();
            }
            Event::Empty(element) => {
                let mut path = path.clone();
                path.push(element.local_name().as_ref().to_owned());
                leaves.push((path, String::new()));
            }
            Event::Eof => break,
            _ => {}
        }
    }
    if !path.is_empty() {
        return Err("the document is cut off".to_owned());
    }
    Ok(leaves)
}

/// The character behind `&name;`. Nothing is ever expanded but the five of XML and numbers.
fn resolve(reference: &quick_xml::events::BytesRef<'_>) -> Result<char, String> {
    if let Some(character) = reference
        .resolve_char_ref()
        .map_err(|error| error.to_string())?
    {
        return Ok(character);
    }
    match &**reference {
        "lt" => Ok('<'),
        "gt" => Ok('>'),
        "amp" => Ok('&'),
        "quot" => Ok('"'),
        "apos" => Ok('\''),
        _ => Err("an unknown entity".to_owned()),
    }
}
