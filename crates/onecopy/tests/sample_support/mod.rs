//! Small tars, built byte by byte, and a reader over them.
#![allow(dead_code, reason = "each test file uses its own part of this")]
#![allow(clippy::unwrap_used, reason = "test helpers")]
#![allow(clippy::disallowed_methods, reason = "test input, not payload")]

use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use onecopy::buffer::{Slab, Slice};
use onecopy::config::OnError;
use onecopy::ledger::Ledger;
use onecopy::sample::{Sample, SampleOptions, SampleReader};
use onecopy::{Error, Result};
use tracing::field::Field;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// One header, to be bent before it is sealed by its checksum.
pub(crate) struct Header(pub(crate) [u8; 512]);

impl Header {
    pub(crate) fn new(name: &[u8], size: usize) -> Self {
        let mut block = [0; 512];
        block[..name.len()].copy_from_slice(name);
        block[100..108].copy_from_slice(b"0000644\0");
        block[108..116].copy_from_slice(b"0000000\0");
        block[116..124].copy_from_slice(b"0000000\0");
        block[124..136].copy_from_slice(format!("{size:011o}\0").as_bytes());
        block[136..148].copy_from_slice(b"00000000000\0");
        block[156] = b'0';
        block[257..265].copy_from_slice(b"ustar\x0000");
        Self(block)
    }

    pub(crate) fn put(mut self, at: usize, bytes: &[u8]) -> Self {
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
        self
    }

    pub(crate) fn flag(self, typeflag: u8) -> Self {
        self.put(156, &[typeflag])
    }

    pub(crate) fn sealed(self) -> [u8; 512] {
        let block = self.put(148, b"        ").0;
        let sum: u32 = block.iter().map(|&byte| u32::from(byte)).sum();
        Self(block).put(148, format!("{sum:06o}\0 ").as_bytes()).0
    }
}

/// A tar under construction.
#[derive(Default, Clone)]
pub(crate) struct Tar(pub(crate) Vec<u8>);

impl Tar {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn raw(mut self, header: Header, content: &[u8]) -> Self {
        self.0.extend_from_slice(&header.sealed());
        self.0.extend_from_slice(content);
        self.0.resize(self.0.len().next_multiple_of(512), 0);
        self
    }

    pub(crate) fn file(self, name: &str, content: &[u8]) -> Self {
        self.raw(Header::new(name.as_bytes(), content.len()), content)
    }

    pub(crate) fn pax(self, flag: u8, records: &[(&str, &str)]) -> Self {
        let body: String = records
            .iter()
            .map(|(key, value)| record(key, value))
            .collect();
        self.raw(
            Header::new(b"PaxHeaders/x", body.len()).flag(flag),
            body.as_bytes(),
        )
    }

    pub(crate) fn long_name(self, flag: u8, name: &str) -> Self {
        let body = format!("{name}\0");
        self.raw(
            Header::new(b"././@LongLink", body.len())
                .flag(flag)
                .put(257, b"ustar  \0"),
            body.as_bytes(),
        )
    }

    pub(crate) fn end(mut self) -> Vec<u8> {
        self.0
            .resize((self.0.len() + 1024).next_multiple_of(10240), 0);
        self.0
    }
}

/// `<length> <keyword>=<value>\n`, the length including itself.
pub(crate) fn record(key: &str, value: &str) -> String {
    let rest = format!(" {key}={value}\n");
    let mut len = rest.len();
    while format!("{len}{rest}").len() != len {
        len = format!("{len}{rest}").len();
    }
    format!("{len}{rest}")
}

/// The base fixture: a.txt, b.txt, c.txt of 600 bytes each.
pub(crate) fn f3() -> Vec<u8> {
    Tar::new()
        .file("a.txt", &[b'x'; 600])
        .file("b.txt", &[b'y'; 600])
        .file("c.txt", &[b'z'; 600])
        .end()
}

/// Files that hold their own names.
pub(crate) fn named(names: &[&str]) -> Vec<u8> {
    names
        .iter()
        .fold(Tar::new(), |tar, name| tar.file(name, name.as_bytes()))
        .end()
}

/// What came of reading a shard.
pub(crate) struct Outcome {
    pub(crate) samples: Vec<Sample>,
    pub(crate) error: Option<Error>,
    pub(crate) ledger: Arc<Ledger>,
}

impl Outcome {
    /// `key:field,field key:field`.
    pub(crate) fn told(&self) -> String {
        let samples = self.samples.iter().map(|sample| {
            let fields: Vec<_> = sample.fields.iter().map(|field| &*field.name).collect();
            format!("{}:{}", sample.key, fields.join(","))
        });
        samples.collect::<Vec<_>>().join(" ")
    }

    /// `name=count` of everything warned of and skipped.
    pub(crate) fn counted(&self) -> String {
        let report = self.ledger.report();
        let warned = report
            .warnings
            .iter()
            .map(|(name, n)| format!("{name}={n}"));
        let skipped = report
            .skipped
            .by_cause
            .iter()
            .map(|(name, n)| format!("skipped:{name}={n}"));
        warned.chain(skipped).collect::<Vec<_>>().join(" ")
    }

    /// Samples and shards that the ledger says are lost.
    pub(crate) fn lost(&self) -> (u64, u64) {
        let skipped = self.ledger.report().skipped;
        let by_cause: u64 = skipped.by_cause.values().sum();
        assert_eq!(by_cause, skipped.samples + skipped.shards);
        (skipped.samples, skipped.shards)
    }

    pub(crate) fn error_text(&self) -> String {
        self.error
            .as_ref()
            .map(|error| format!("{error:#}"))
            .unwrap_or_default()
    }
}

pub(crate) fn options(on_error: OnError) -> SampleOptions {
    SampleOptions {
        on_error,
        ..SampleOptions::default()
    }
}

/// Reads the pieces as one shard.
pub(crate) fn read_pieces(
    pieces: Vec<Result<Slice>>,
    len_bytes: Option<u64>,
    options: SampleOptions,
) -> Outcome {
    let ledger = Ledger::unread();
    let mut reader = SampleReader::new(
        Arc::from("s3://b/t.tar"),
        len_bytes,
        pieces.into_iter(),
        options,
        &ledger,
    );
    let mut samples = Vec::new();
    let mut error = None;
    for item in reader.by_ref() {
        assert!(error.is_none(), "nothing comes after an error");
        match item {
            Ok(sample) => samples.push(sample),
            Err(failed) => error = Some(failed),
        }
    }
    assert!(reader.next().is_none(), "the end stays the end");
    Outcome {
        samples,
        error,
        ledger,
    }
}

pub(crate) fn read_with(bytes: &[u8], options: SampleOptions) -> Outcome {
    let len = bytes.len() as u64;
    let pieces = vec![Ok(Slice::from_vec(bytes.to_vec()))];
    read_pieces(pieces, Some(len), options)
}

pub(crate) fn read(bytes: &[u8]) -> Outcome {
    read_with(bytes, SampleOptions::default())
}

pub(crate) fn skip(bytes: &[u8]) -> Outcome {
    read_with(bytes, options(OnError::Skip))
}

/// The lines that `work` logs.
pub(crate) fn logged<T>(work: impl FnOnce() -> T) -> (T, Vec<String>) {
    let log = Log::default();
    let lines = Arc::clone(&log.0);
    let result = tracing::subscriber::with_default(log, work);
    let lines = lines.lock().unwrap().clone();
    (result, lines)
}

#[derive(Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN
    }

    fn event(&self, event: &Event<'_>) {
        event.record(&mut |field: &Field, value: &dyn Debug| {
            assert_eq!(field.name(), "message");
            self.0.lock().unwrap().push(format!("{value:?}"));
        });
    }

    fn new_span(&self, _span: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _span: &Id, _values: &Record<'_>) {}

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn enter(&self, _span: &Id) {}

    fn exit(&self, _span: &Id) {}
}

/// Cuts bytes into memory of its own after each of `lens` bytes, again and again.
pub(crate) fn strangers(bytes: &[u8], lens: &[usize]) -> Vec<Result<Slice>> {
    let mut rest = bytes;
    let mut pieces = Vec::new();
    for &len in lens.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (piece, after) = rest.split_at(len.min(rest.len()));
        pieces.push(Ok(Slice::from_vec(piece.to_vec())));
        rest = after;
    }
    pieces
}

/// Cuts bytes into neighbours of one run.
pub(crate) fn neighbours(bytes: &[u8], len: usize) -> Vec<Result<Slice>> {
    let mut slab = Slab::heap(bytes.len());
    slab.copy_from_slice(bytes);
    let whole = slab.freeze();
    (0..bytes.len())
        .step_by(len)
        .map(|start| Ok(whole.slice(start..(start + len).min(bytes.len()))))
        .collect()
}
