//! `onecopy ls`: what is there, folded at slashes as `aws s3 ls` does.

use std::fmt;
use std::future::Future;

use onecopy::error::Printable;
use onecopy::ledger::Ledger;
use onecopy::store::{
    Absent, ListRequest, Named, Object, Pages, Store, is_pattern, open_store, resolve_with,
};
use onecopy::sync::Arc;
use onecopy::{Error, ErrorKind, Result};
use serde::{Serialize, Serializer};

use super::{Context, Outcome, buckets, store_config};
use crate::args::LsArgs;
use crate::exit::Exit;

const DAY_SECONDS: i64 = 86_400;

/// What was found.
#[derive(Debug, Serialize)]
struct Listing {
    schema: u32,
    url: String,
    prefixes: Vec<String>,
    objects: Vec<Entry>,
    total_objects: usize,
    total_bytes: u64,
    #[serde(skip)]
    is_human_readable: bool,
    #[serde(skip)]
    is_summarized: bool,
    /// Whether something that was named outright is not there.
    #[serde(skip)]
    is_incomplete: bool,
}

/// One object.
#[derive(Debug, Serialize)]
struct Entry {
    /// The key, without what the listing was folded at.
    name: String,
    url: String,
    len_bytes: Option<u64>,
    etag: Option<String>,
    /// In UTC.
    modified: Option<Moment>,
}

/// Seconds since the epoch, shown as a date in UTC.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment(pub(super) i64);

pub(super) fn run(args: &LsArgs, context: &Context) -> Result<Outcome> {
    if buckets::is_meant(&args.url) {
        return buckets::run(args);
    }
    let listing = if is_pattern(&args.url) {
        block_on(matches(args, context))?
    } else {
        block_on(below(args, context))?
    };
    let is_empty = listing.objects.is_empty() && listing.prefixes.is_empty();
    // An empty bucket is a good answer to what is in it; a key that nothing begins with is not.
    let is_told = !is_empty || is_bucket(&args.url);
    let exit = Exit::answer(is_told && !listing.is_incomplete);
    let is_remarked = !is_told && !listing.is_incomplete;
    let outcome = Outcome::new(listing, exit);
    // `aws s3 ls` ends with 1, too, and says nothing, which leaves one wondering.
    Ok(if is_remarked {
        outcome.with_remark(format!("nothing at {}", Printable(&args.url)))
    } else {
        outcome
    })
}

pub(super) fn block_on<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Error::io("start", "the network", error))?
        .block_on(work)
}

fn is_bucket(url: &str) -> bool {
    url.strip_prefix("s3://")
        .is_some_and(|rest| rest.split_once('/').is_none_or(|(_, key)| key.is_empty()))
}

/// What the pattern matches, each under its whole URL. What its braces name and is not there is told, and the rest goes on.
async fn matches(args: &LsArgs, context: &Context) -> Result<Listing> {
    let mut listing = Listing::new(args);
    let (urls, config) = (std::slice::from_ref(&args.url), store_config(&args.store));
    for source in resolve_with(urls, &config, Absent::Ignored, &Ledger::unread()).await? {
        context.interrupt.check()?;
        let object = match source.object.len_bytes {
            Some(_) => source.object,
            None => match source.store.head(&source.object).await {
                Ok(object) => object,
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    tracing::warn!("{error}");
                    listing.is_incomplete = true;
                    continue;
                }
                Err(error) => return Err(error),
            },
        };
        listing.add(&object, Printable(&object.url).to_string());
    }
    Ok(listing)
}

/// What begins with the URL.
async fn below(args: &LsArgs, context: &Context) -> Result<Listing> {
    let mut listing = Listing::new(args);
    let (store, named) = open_store(&args.url, &store_config(&args.store))?;
    let prefix = match named {
        Named::Prefix(prefix) => prefix,
        Named::Object(object) if args.url.starts_with("s3://") => object.key,
        Named::Object(object) => {
            let object = store.head(&object).await?;
            listing.add(&object, Printable(&object.url).to_string());
            return Ok(listing);
        }
    };
    let folded = if args.is_recursive {
        0
    } else {
        let bytes = prefix.as_bytes();
        bytes
            .iter()
            .rposition(|byte| *byte == b'/')
            .map_or(0, |at| at + 1)
    };
    let request = ListRequest {
        prefix,
        is_folded: !args.is_recursive,
        page: None,
    };
    list(&store, request, folded, &mut listing, context).await?;
    Ok(listing)
}

async fn list(
    store: &Arc<dyn Store>,
    mut request: ListRequest,
    folded: usize,
    listing: &mut Listing,
    context: &Context,
) -> Result<()> {
    let name = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes.get(folded..).unwrap_or_default());
        Printable(&text).to_string()
    };
    let mut pages = Pages::default();
    loop {
        context.interrupt.check()?;
        let page = store.list(&request).await?;
        pages.next(&page, &listing.url)?;
        let prefixes = page.prefixes.iter().map(|prefix| name(prefix.as_bytes()));
        listing.prefixes.extend(prefixes);
        for object in &page.objects {
            listing.add(object, name(object.key.as_bytes()));
        }
        if page.next.is_none() {
            return Ok(());
        }
        if page.next == request.page {
            let why = "the server gives the same page again and again";
            return Err(Error::new(ErrorKind::Corrupt, "list", &listing.url, why));
        }
        request.page = page.next;
    }
}

impl Listing {
    fn new(args: &LsArgs) -> Self {
        Self {
            schema: 1,
            url: args.url.clone(),
            prefixes: Vec::new(),
            objects: Vec::new(),
            total_objects: 0,
            total_bytes: 0,
            is_human_readable: args.is_human_readable,
            is_summarized: args.is_summarized,
            is_incomplete: false,
        }
    }

    fn add(&mut self, object: &Object, name: String) {
        self.total_objects += 1;
        self.total_bytes += object.len_bytes.unwrap_or(0);
        self.objects.push(Entry {
            name,
            url: object.url.to_string(),
            len_bytes: object.len_bytes,
            etag: object.etag.as_ref().map(|etag| etag.0.to_string()),
            modified: object.modified_unix.map(Moment),
        });
    }

    fn size(&self, len_bytes: u64) -> String {
        if self.is_human_readable {
            return human(len_bytes);
        }
        len_bytes.to_string()
    }
}

impl fmt::Display for Listing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for prefix in &self.prefixes {
            writeln!(f, "{:>30} {prefix}", "PRE")?;
        }
        for object in &self.objects {
            let modified = object.modified.map(|moment| moment.to_string());
            let size = object.len_bytes.map(|len_bytes| self.size(len_bytes));
            writeln!(
                f,
                "{:<19} {:>10} {}",
                modified.as_deref().unwrap_or("-"),
                size.as_deref().unwrap_or("-"),
                object.name
            )?;
        }
        if self.is_summarized {
            writeln!(f, "\nTotal Objects: {}", self.total_objects)?;
            writeln!(f, "   Total Size: {}", self.size(self.total_bytes))?;
        }
        Ok(())
    }
}

/// `1.5 MiB`, in the largest unit that gives at least 1.
pub(super) fn human(len_bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if len_bytes < 1024 {
        return format!("{len_bytes} B");
    }
    let mut size = len_bytes as f64 / 1024.0;
    let mut unit = 0;
    // What would round to 1024.0 is 1.0 of the next unit.
    while size >= 1023.95 && unit + 1 < UNITS.len() {
        size /= 1024.0;
        unit += 1;
    }
    format!("{size:.1} {}", UNITS[unit])
}

impl Moment {
    /// Year, month and day of the proleptic Gregorian calendar (H. Hinnant, "chrono-compatible
    /// low-level date algorithms", `civil_from_days`).
    fn date(self) -> (i64, i64, i64) {
        let days = self.0.div_euclid(DAY_SECONDS) + 719_468;
        let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
        let year_of_era =
            (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let march_month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * march_month + 2) / 5 + 1;
        let month = if march_month < 10 {
            march_month + 3
        } else {
            march_month - 9
        };
        let year = year_of_era + era * 400 + i64::from(month <= 2);
        (year, month, day)
    }

    fn time(self) -> (i64, i64, i64) {
        let seconds = self.0.rem_euclid(DAY_SECONDS);
        (seconds / 3600, seconds / 60 % 60, seconds % 60)
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ((year, month, day), (hour, minute, second)) = (self.date(), self.time());
        write!(
            f,
            "{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}"
        )
    }
}

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&(self.to_string().replace(' ', "T") + "Z"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (unix, shown) in [
            (0, "1970-01-01 00:00:00"),
            (951_782_400, "2000-02-29 00:00:00"),
            (1_735_689_599, "2024-12-31 23:59:59"),
            (-1, "1969-12-31 23:59:59"),
        ] {
            assert_eq!(Moment(unix).to_string(), shown);
        }
    }

    #[test]
    fn sizes_are_shown_in_the_largest_unit() {
        for (len_bytes, shown) in [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB")] {
            assert_eq!(human(len_bytes), shown);
        }
        assert_eq!(human((1 << 20) - 1), "1.0 MiB");
        assert_eq!(human(u64::MAX), "16.0 EiB");
    }
}
