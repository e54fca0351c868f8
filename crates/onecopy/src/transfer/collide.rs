//! Keys that cannot be files beside each other: `a` is a file and `a/b` wants a folder of that name.

use super::entry::Entry;

/// Holds a key back until no later key can want a folder of its name, without waiting for more than it must: in byte order
/// only keys that begin with it can come between, so that what is held back is never more than the parts of one key.
#[derive(Debug)]
pub(super) struct Collisions<T> {
    held: Vec<(Entry, T)>,
}

impl<T> Collisions<T> {
    pub(super) const fn new() -> Self {
        Self { held: Vec::new() }
    }

    /// Takes the next key in order. Returns what may go on, and the entries that `entry` makes impossible.
    pub(super) fn next(&mut self, relative: &[u8]) -> (Vec<(Entry, T)>, Vec<Entry>) {
        let (mut free, mut impossible) = (Vec::new(), Vec::new());
        let mut kept = Vec::new();
        for (entry, what) in self.held.drain(..) {
            let held = &entry.relative;
            match relative.strip_prefix(held.as_slice()) {
                Some(rest) if rest.starts_with(b"/") => impossible.push(entry),
                // `a!` and `a.b` lie between `a` and `a/`.
                Some(rest) if rest.first().is_some_and(|next| *next < b'/') => {
                    kept.push((entry, what));
                }
                _ => free.push((entry, what)),
            }
        }
        self.held = kept;
        (free, impossible)
    }

    /// Holds `entry` back.
    pub(super) fn hold(&mut self, entry: Entry, what: T) {
        self.held.push((entry, what));
    }

    /// The end of the keys: nothing can collide any more.
    pub(super) fn end(&mut self) -> Vec<(Entry, T)> {
        std::mem::take(&mut self.held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(keys: &[&str]) -> (Vec<String>, Vec<String>, usize) {
        let text = |entry: &Entry| String::from_utf8(entry.relative.clone()).unwrap();
        let mut collisions = Collisions::new();
        let (mut fine, mut bad, mut most) = (Vec::new(), Vec::new(), 0);
        for key in keys {
            let (free, impossible) = collisions.next(key.as_bytes());
            fine.extend(free.iter().map(|(entry, ())| text(entry)));
            bad.extend(impossible.iter().map(text));
            let entry = Entry {
                relative: key.as_bytes().into(),
                len_bytes: 0,
                modified_unix: None,
                object: None,
            };
            collisions.hold(entry, ());
            most = most.max(collisions.held.len());
        }
        fine.extend(collisions.end().iter().map(|(entry, ())| text(entry)));
        (fine, bad, most)
    }

    #[test]
    fn a_file_in_the_way_of_a_folder_is_found_whatever_lies_between() {
        let mut keys = vec!["a", "a!", "a.b", "a/b", "a/b/c", "a0", "b", "b-", "b.c"];
        keys.sort_unstable();
        let (fine, bad, _) = run(&keys);
        assert_eq!(bad, ["a", "a/b"]);
        let mut fine = fine;
        fine.sort_unstable();
        assert_eq!(fine, ["a!", "a.b", "a/b/c", "a0", "b", "b-", "b.c"]);
    }

    #[test]
    fn no_more_than_the_parts_of_one_key_are_held() {
        let many: Vec<String> = (0..10_000).map(|n| format!("a.{n:05}")).collect();
        let mut keys: Vec<&str> = many.iter().map(String::as_str).collect();
        keys.insert(0, "a");
        keys.push("a/x");
        let (fine, bad, most) = run(&keys);
        assert_eq!((fine.len(), bad.len(), most), (10_001, 1, 2));
    }
}
