//! The backslash in URLs: it makes of a character that means something one that means itself.

/// What a backslash makes literal. Before any other character it is itself: keys and paths may hold it.
pub(super) const SPECIAL: &str = r"*?[]{},\";

/// What makes a glob of a name.
const WILD: &str = "*?[";

/// The characters of `text`: where each begins (its backslash included), which it is, and whether it is escaped.
pub(super) fn characters(text: &str) -> impl Iterator<Item = (usize, char, bool)> {
    let mut rest = text.char_indices().peekable();
    std::iter::from_fn(move || {
        let (at, character) = rest.next()?;
        let escaped = rest.next_if(|(_, next)| character == '\\' && SPECIAL.contains(*next));
        Some(match escaped {
            Some((_, meant)) => (at, meant, true),
            None => (at, character, false),
        })
    })
}

/// `text` as it is meant, without its backslashes.
#[must_use]
pub fn unescaped(text: &str) -> String {
    characters(text)
        .map(|(_, character, _)| character)
        .collect()
}

/// Whether `text` has what makes it a glob.
#[must_use]
pub fn has_glob(text: &str) -> bool {
    characters(text).any(|(_, character, is_escaped)| !is_escaped && WILD.contains(character))
}

/// Whether `text` has what makes it stand for several names, or another one than is written.
pub(super) fn has_braces(text: &str) -> bool {
    characters(text).any(|(_, character, is_escaped)| !is_escaped && character == '{')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backslash_makes_literal_what_means_something_and_nothing_else() {
        for (written, meant, is_glob) in [
            ("a/b.tar", "a/b.tar", false),
            ("a*b", "a*b", true),
            (r"a\*b", "a*b", false),
            (r"a\?b\[c\]", "a?b[c]", false),
            (r"\{1\,2\}", "{1,2}", false),
            (r"a\\*", r"a\*", true),
            (r"a\\\*", r"a\*", false),
            (r"C:\new\tab", r"C:\new\tab", false),
            ("end\\", "end\\", false),
            (r"\ä*", r"\ä*", true),
        ] {
            assert_eq!(unescaped(written), meant, "{written}");
            assert_eq!(has_glob(written), is_glob, "{written}");
        }
        assert!(has_braces("a{b") && !has_braces(r"a\{b"));
    }
}
