//! `onecopy ls`: what is there, folded at slashes as `aws s3 ls` does.

use std::fmt;
use std::future::Future;

use onecopy::error::Printable;
use onecopy::ledger::Ledger;
use onecopy::store::{
    Absent, FilesBelow, Key, ListRequest, Named, Object, Pages, Store, behind_listed, is_pattern,
    open_store, resolve_with,
};
use onecopy::sync::{Arc, runtime_here};
use onecopy::{Error, ErrorKind, Result};
use serde::Serialize;

use super::figures::{Moment, human};
use super::{Context, Outcome, buckets, store_config};
use crate::args::LsArgs;
use crate::exit::Exit;
use crate::stdout::Reader;

/// Files that are shown at once.
const FILES_AT_A_TIME: usize = 1000;

/// What was found. As text it is shown while it is found, and this is what was not shown yet.
#[derive(Debug, Serialize)]
struct Listing {
    schema: u32,
    url: String,
    prefixes: Vec<String>,
    objects: Vec<Entry>,
    total_objects: usize,
    total_bytes: u64,
    #[serde(skip)]
    total_prefixes: usize,
    #[serde(skip)]
    is_human_readable: bool,
    #[serde(skip)]
    is_summarized: bool,
    /// Whether something that was named outright is not there, or could not be read.
    #[serde(skip)]
    is_incomplete: bool,
    #[serde(skip)]
    reader: Reader,
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

pub(super) fn run(args: &LsArgs, context: &Context) -> Result<Outcome> {
    if buckets::is_meant(&args.url) {
        return buckets::run(args);
    }
    let listing = if is_pattern(&args.url) {
        block_on(matches(args, context))?
    } else {
        block_on(below(args, context))?
    };
    let is_empty = listing.total_objects + listing.total_prefixes == 0;
    // An empty bucket is a good answer to what is in it; a key that nothing begins with is not.
    let is_told = !is_empty || is_bucket(&args.url);
    let exit = Exit::answer(is_told && !listing.is_incomplete).read_by(listing.reader);
    if listing.reader == Reader::Gone {
        let (value, remark) = (None, None);
        return Ok(Outcome {
            value,
            remark,
            exit,
        });
    }
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
    runtime_here("the network")?.block_on(work)
}

fn is_bucket(url: &str) -> bool {
    behind_listed(url)
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
        Named::Prefix(prefix) if args.is_recursive && !is_remote(&args.url) => {
            files(&prefix, &mut listing, context)?;
            return Ok(listing);
        }
        Named::Prefix(prefix) => prefix,
        Named::Object(object) if behind_listed(&args.url).is_some() => object.key,
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

fn is_remote(url: &str) -> bool {
    url.contains("://") && !url.starts_with("file://") && !url.starts_with("file+escaped://")
}

/// Every file below a folder. What cannot be read is told, and the rest goes on.
fn files(prefix: &Key, listing: &mut Listing, context: &Context) -> Result<()> {
    for file in FilesBelow::new(prefix)? {
        context.interrupt.check()?;
        match file {
            Ok(object) => {
                let text = String::from_utf8_lossy(object.key.as_bytes());
                listing.add(&object, Printable(&text).to_string());
            }
            Err(error) => {
                listing.is_incomplete = true;
                listing.show(context)?;
                context.output.note(&format!("onecopy: {error}"));
            }
        }
        if listing.objects.len() >= FILES_AT_A_TIME && listing.show(context)? == Reader::Gone {
            return Ok(());
        }
    }
    Ok(())
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
        listing.total_prefixes += page.prefixes.len();
        for object in &page.objects {
            listing.add(object, name(object.key.as_bytes()));
        }
        if page.next.is_none() || listing.show(context)? == Reader::Gone {
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
            total_prefixes: 0,
            is_human_readable: args.is_human_readable,
            is_summarized: args.is_summarized,
            is_incomplete: false,
            reader: Reader::There,
        }
    }

    /// Shows what was found since the last time, where it is shown as text: JSON is one object, told at the end.
    fn show(&mut self, context: &Context) -> Result<Reader> {
        if !context.output.is_json() && self.reader == Reader::There {
            self.reader = context.output.lines(&self.rows())?;
            self.prefixes.clear();
            self.objects.clear();
        }
        Ok(self.reader)
    }

    /// A line for each prefix and object.
    fn rows(&self) -> String {
        let mut rows = String::new();
        for prefix in &self.prefixes {
            rows += &format!("{:>30} {prefix}\n", "PRE");
        }
        for object in &self.objects {
            let modified = object.modified.map(|moment| moment.to_string());
            let size = object.len_bytes.map(|len_bytes| self.size(len_bytes));
            rows += &format!(
                "{:<19} {:>10} {}\n",
                modified.as_deref().unwrap_or("-"),
                size.as_deref().unwrap_or("-"),
                object.name
            );
        }
        rows
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
        f.write_str(&self.rows())?;
        if self.is_summarized {
            writeln!(f, "\nTotal Objects: {}", self.total_objects)?;
            writeln!(f, "   Total Size: {}", self.size(self.total_bytes))?;
        }
        Ok(())
    }
}
