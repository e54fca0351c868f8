//! Listings that would never end.

use super::ListPage;
use crate::error::{Error, ErrorKind, Result};

/// Pages without anything on them that may follow each other. A store that looks for keys among very many that are deleted
/// sends some; one that sends this many has lost its way.
const MOST_EMPTY: u32 = 1000;

/// Watches the pages of one listing.
#[derive(Debug, Default)]
pub struct Pages {
    empty: u32,
}

impl Pages {
    /// Takes the next page of the listing of `url`.
    ///
    /// # Errors
    ///
    /// `Corrupt` after 1,000 empty pages in a row, each of which promised another one.
    pub fn next(&mut self, page: &ListPage, url: &str) -> Result<()> {
        if !page.objects.is_empty() || !page.prefixes.is_empty() {
            self.empty = 0;
            return Ok(());
        }
        self.empty += 1;
        if page.next.is_none() || self.empty < MOST_EMPTY {
            return Ok(());
        }
        let why = format!("the server sent {MOST_EMPTY} empty pages in a row, and promises more");
        let target = super::shown_url(url);
        Err(Error::new(ErrorKind::Corrupt, "list", target, why)
            .with_help("does the endpoint list right? try it with another tool"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_may_have_empty_pages_but_not_without_end() {
        let empty = || ListPage {
            next: Some("t".into()),
            ..ListPage::default()
        };
        let full = || ListPage {
            prefixes: vec![crate::store::Key::new(*b"p/")],
            ..empty()
        };
        let mut pages = Pages::default();
        for _ in 0..3 {
            for _ in 1..MOST_EMPTY {
                pages.next(&empty(), "s3://b").unwrap();
            }
            pages.next(&full(), "s3://b").unwrap();
        }
        for _ in 1..MOST_EMPTY {
            pages.next(&empty(), "s3://b").unwrap();
        }
        let error = pages.next(&empty(), "s3://b").unwrap_err();
        assert_eq!(
            (error.kind(), error.target()),
            (ErrorKind::Corrupt, "s3://b")
        );
        let mut pages = Pages { empty: MOST_EMPTY };
        pages.next(&ListPage::default(), "s3://b").unwrap();
    }
}
