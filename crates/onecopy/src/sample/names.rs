//! Member names to keys and fields, as WebDataset has it: `^((?:.*/|)[^.]+)[.]([^/]*)$`, with the traps closed.

use std::borrow::Cow;
use std::fmt::Write as _;

use super::KeyRule;

/// What a member's name makes of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Named<'a> {
    /// A field of a sample.
    Field {
        key: &'a str,
        field: &'a str,
        /// An oddity worth a warning.
        odd: Option<&'static str>,
    },
    /// No part of any sample, for the named reason.
    Aside(&'static str),
}

/// Splits `name` at the dot that `rule` names.
pub(super) fn split(name: &str, rule: KeyRule) -> Named<'_> {
    let base_at = name.rfind('/').map_or(0, |slash| slash + 1);
    let base = &name[base_at..];
    if base.starts_with("._") {
        // What bsdtar on macOS writes beside each file to hold its extended attributes.
        return Named::Aside("apple_double");
    }
    if base.starts_with('.') {
        return Named::Aside("hidden_file");
    }
    let dot = match rule {
        KeyRule::FirstDot => base.find('.'),
        KeyRule::LastDot => base.rfind('.'),
    };
    let Some(dot) = dot else {
        return Named::Aside("no_extension");
    };
    let (stem, field) = (&base[..dot], &base[dot + 1..]);
    if stem.len() > 4 && stem.starts_with("__") && stem.ends_with("__") {
        // `__index__.json`, `__meta__.txt`: about the shard, not in it.
        return Named::Aside("metadata_member");
    }
    let is_odd = field.is_empty()
        || field.starts_with('.')
        || field.contains(|c: char| c.is_whitespace() || c == '(');
    Named::Field {
        key: &name[..base_at + dot],
        field,
        odd: is_odd.then_some("odd_field_name"),
    }
}

/// The name as text. Bytes that are no UTF-8 become `\xNN`, so that two different names stay different.
pub(super) fn text(name: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(name) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(name.len() + 16);
    for chunk in name.utf8_chunks() {
        out.push_str(chunk.valid());
        for byte in chunk.invalid() {
            let _infallible = write!(out, "\\x{byte:02x}");
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(key: &str, field: &str, odd: bool) -> (Option<(String, String)>, &'static str) {
        let odd = if odd { "odd_field_name" } else { "" };
        (Some((key.to_owned(), field.to_owned())), odd)
    }

    fn aside(why: &'static str) -> (Option<(String, String)>, &'static str) {
        (None, why)
    }

    fn told(name: &str, rule: KeyRule) -> (Option<(String, String)>, &'static str) {
        match split(name, rule) {
            Named::Field { key, field, odd } => (
                Some((key.to_owned(), field.to_owned())),
                odd.unwrap_or_default(),
            ),
            Named::Aside(why) => (None, why),
        }
    }

    #[test]
    fn splits_at_the_first_dot_of_the_file_name() {
        let cases = [
            ("a.jpg", field("a", "jpg", false)),
            ("./a.jpg", field("./a", "jpg", false)),
            ("a.left.jpg", field("a", "left.jpg", false)),
            (
                "/some/path/22.0/1.1.png",
                field("/some/path/22.0/1", "1.png", false),
            ),
            (
                "235342 Track 2.0 (Clean Version).mp3",
                field("235342 Track 2", "0 (Clean Version).mp3", true),
            ),
            (
                "S_4001_VE1.wav.data",
                field("S_4001_VE1", "wav.data", false),
            ),
            ("README", aside("no_extension")),
            ("dir.v1/a", aside("no_extension")),
            (".hidden.jpg", aside("hidden_file")),
            ("dir/.hidden.jpg", aside("hidden_file")),
            ("a.", field("a", "", true)),
            ("a..jpg", field("a", ".jpg", true)),
            ("./._a.jpg", aside("apple_double")),
            ("dir/._a.jpg", aside("apple_double")),
            ("__index__.json", aside("metadata_member")),
            ("x/__meta__.txt", aside("metadata_member")),
            ("__.json", field("__", "json", false)),
            ("", aside("no_extension")),
        ];
        for (name, expected) in cases {
            assert_eq!(told(name, KeyRule::FirstDot), expected, "{name:?}");
        }
    }

    #[test]
    fn splits_at_the_last_dot_where_asked() {
        let cases = [
            (
                "235342 Track 2.0 (Clean Version).mp3",
                field("235342 Track 2.0 (Clean Version)", "mp3", false),
            ),
            (
                "S_4001_VE1.wav.data",
                field("S_4001_VE1.wav", "data", false),
            ),
            ("a..jpg", field("a.", "jpg", false)),
            ("dir.v1/a", aside("no_extension")),
        ];
        for (name, expected) in cases {
            assert_eq!(told(name, KeyRule::LastDot), expected, "{name:?}");
        }
    }

    #[test]
    fn names_that_are_no_text_stay_apart() {
        assert_eq!(text(b"a\xff.jpg"), "a\\xff.jpg");
        assert_ne!(text(b"a\xff.jpg"), text(b"a\xfe.jpg"));
        assert!(matches!(text("ü.jpg".as_bytes()), Cow::Borrowed("ü.jpg")));
    }
}
