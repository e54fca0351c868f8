//! Finding names among many.

use std::collections::HashMap;

/// Up to how many names are looked through one by one. Samples have two to ten fields, for which that is faster than
/// hashing; but how many they have is up to whoever wrote the shard.
const FEW: usize = 32;

/// Where names stand in a list that only grows: few are looked through, many are hashed, each once.
#[derive(Debug, Default)]
pub(crate) struct Places {
    hashed: HashMap<String, usize>,
    /// So many items of the list are in `hashed`.
    known: usize,
}

impl Places {
    /// The place of the first of `items` that is called `name`. All calls are about one list, longer each time or not.
    pub(crate) fn find<T>(
        &mut self,
        items: &[T],
        name_of: impl Fn(&T) -> &str,
        name: &str,
    ) -> Option<usize> {
        if items.len() <= FEW {
            return items.iter().position(|item| name_of(item) == name);
        }
        for (place, item) in items.iter().enumerate().skip(self.known) {
            self.hashed.entry(name_of(item).to_owned()).or_insert(place);
        }
        self.known = items.len();
        self.hashed.get(name).copied()
    }

    /// Begins with another list.
    pub(crate) fn clear(&mut self) {
        // Emptying a map costs its capacity, and the next list may be short.
        if self.known > 0 {
            *self = Self::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn a_hundred_thousand_names_are_looked_at_once_each() {
        let looks = Cell::new(0);
        let mut places = Places::default();
        let mut names: Vec<String> = Vec::new();
        let mut find = |names: &[String], name: &str| {
            places.find(
                names,
                |one| {
                    looks.set(looks.get() + 1);
                    one
                },
                name,
            )
        };
        for number in 0..100_000 {
            let name = format!("part{number}");
            assert_eq!(find(&names, &name), None);
            names.push(name);
        }
        for (number, name) in names.iter().enumerate() {
            assert_eq!(find(&names, name), Some(number));
        }
        assert!(looks.get() <= 100_000 + FEW * FEW, "{}", looks.get());
    }

    #[test]
    fn the_first_of_a_name_is_found_among_few_and_among_many() {
        for count in [3, FEW, FEW + 1, 100] {
            let mut places = Places::default();
            let mut names: Vec<String> = (0..count).map(|number| number.to_string()).collect();
            names[2] = "1".to_owned();
            let mut find = |name| places.find(&names, String::as_str, name);
            assert_eq!((find("1"), find("0"), find("x")), (Some(1), Some(0), None));
            places.clear();
            assert_eq!(places.find(&["x"], |name| name, "1"), None);
        }
    }
}
