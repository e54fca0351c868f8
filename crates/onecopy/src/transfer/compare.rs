//! Whether what is at the target is already what is at the source.

use super::entry::Entry;

/// By what two files of one name are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Compare {
    /// Another size, or a source that is newer.
    #[default]
    SizeAndTime,
    /// Another size.
    Size,
    /// Another size, or another time: for downloads, which give files the time of their object.
    Exact,
    /// Another size, or another checksum; one that the store does not keep counts as another.
    Checksum,
}

/// What comparing tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Same,
    Differs,
    /// The bytes must be looked at.
    Unknown,
}

impl Compare {
    pub(super) fn judge(self, source: &Entry, target: &Entry) -> Verdict {
        if source.len_bytes != target.len_bytes {
            return Verdict::Differs;
        }
        let is_same = match self {
            Self::Size => true,
            Self::Checksum => return Verdict::Unknown,
            Self::Exact => source.modified_unix == target.modified_unix,
            // Where a time is not known, nothing says that the source is newer.
            Self::SizeAndTime => match (source.modified_unix, target.modified_unix) {
                (Some(source), Some(target)) => source <= target,
                _ => true,
            },
        };
        if is_same {
            Verdict::Same
        } else {
            Verdict::Differs
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_decide_as_asked() {
        use Verdict::{Differs, Same, Unknown};
        let entry = |len_bytes, modified_unix| Entry {
            relative: Vec::new(),
            len_bytes,
            modified_unix,
            object: None,
        };
        let target = entry(5, Some(100));
        // The source, and the verdicts by size and time, by size, exact, by checksum.
        for (source, verdicts) in [
            (entry(5, Some(100)), [Same, Same, Same, Unknown]),
            (entry(5, Some(99)), [Same, Same, Differs, Unknown]),
            (entry(5, Some(101)), [Differs, Same, Differs, Unknown]),
            (entry(6, Some(99)), [Differs, Differs, Differs, Differs]),
            (entry(5, None), [Same, Same, Differs, Unknown]),
        ] {
            let seen = [
                Compare::SizeAndTime,
                Compare::Size,
                Compare::Exact,
                Compare::Checksum,
            ]
            .map(|compare| compare.judge(&source, &target));
            assert_eq!(seen, verdicts, "{source:?}");
        }
    }
}
