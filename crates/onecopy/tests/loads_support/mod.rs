//! Shards, settings and a server for tests of whole loads.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test file uses another part of this one"
)]

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;

use onecopy::Loader;
use onecopy::batch::{Batch, Column};
use onecopy::config::LoadConfig;
use onecopy::loader::Counted;
use onecopy::sync::{Arc, spawn};
use onecopy_testkit::tar::TarWriter;

pub const MIB: usize = 1 << 20;

/// A tar of `samples`, each with a label and `len` bytes.
pub fn shard(samples: &[(String, String)], len: usize) -> Vec<u8> {
    let mut tar = TarWriter::new();
    for (key, label) in samples {
        tar.file(&format!("{key}.cls"), label.as_bytes());
        tar.file(&format!("{key}.bin"), &vec![7; len]);
    }
    tar.finish()
}

pub fn numbered(range: std::ops::Range<usize>) -> Vec<(String, String)> {
    range
        .map(|number| (format!("{number:05}"), number.to_string()))
        .collect()
}

pub fn write(folder: &Path, name: &str, bytes: &[u8]) -> String {
    let path = folder.join(name);
    fs::write(&path, bytes).unwrap();
    path.display().to_string()
}

pub fn config(memory: usize) -> LoadConfig {
    LoadConfig {
        memory_bytes: Some(memory),
        decode_threads: Some(2),
        ..LoadConfig::default()
    }
}

pub fn labels(batch: &Batch) -> Vec<i64> {
    let Some(Column::Tensor(tensor)) = batch.column("cls") else {
        panic!("no labels")
    };
    let words = tensor.bytes.chunks_exact(8);
    words
        .map(|word| i64::from_ne_bytes(word.try_into().unwrap()))
        .collect()
}

pub fn all(loader: Loader) -> Vec<Batch> {
    loader.run().unwrap().map(|batch| batch.unwrap()).collect()
}

/// Sources whose labels tell which they are: those of source `s` are from `1000 * s` on.
pub struct Sources {
    _folder: tempfile::TempDir,
    pub urls: Vec<Vec<String>>,
    pub counts: Vec<Vec<u64>>,
}

impl Sources {
    pub fn new(counts: &[Vec<u64>]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut urls = Vec::new();
        for (source, counts) in counts.iter().enumerate() {
            let mut number = source * 1000;
            let of = |(shard_at, count): (usize, &u64)| {
                let end = number + usize::try_from(*count).unwrap();
                let bytes = shard(&numbered(number..end), 60);
                number = end;
                write(folder.path(), &format!("{source}-{shard_at}.tar"), &bytes)
            };
            urls.push(counts.iter().enumerate().map(of).collect());
        }
        Self {
            _folder: folder,
            urls,
            counts: Vec::from(counts),
        }
    }

    /// The loaders, of which each second one is shuffled.
    pub fn loaders(&self, is_counted: bool, shuffle: Option<usize>) -> Vec<Loader> {
        let of = |(source, urls): (usize, &Vec<String>)| {
            let loader = onecopy::open(urls.clone(), config(16 * MIB));
            let samples = self.counts[source].clone();
            let counted = Counted {
                samples,
                starts: Vec::new(),
            };
            let loader = loader.counted(is_counted.then_some(counted));
            match shuffle {
                Some(capacity) => loader.shuffle(capacity, source as u64),
                None => loader,
            }
        };
        self.urls.iter().enumerate().map(of).collect()
    }

    pub fn samples(&self, source: usize) -> u64 {
        self.counts[source].iter().sum()
    }
}

/// Serves `bytes` over HTTP by ranges; requests from byte `silent_from` on are never answered.
pub fn serve(bytes: Vec<u8>, silent_from: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/a.tar", listener.local_addr().unwrap());
    let bytes = Arc::new(bytes);
    spawn("test-server", move || {
        for stream in listener.incoming() {
            let (stream, bytes) = (stream.unwrap(), Arc::clone(&bytes));
            spawn("test-connection", move || {
                answer(&stream, &bytes, silent_from)
            })
            .unwrap();
        }
    })
    .unwrap();
    url
}

pub fn answer(mut stream: &TcpStream, bytes: &[u8], silent_from: usize) {
    let mut lines = BufReader::new(stream).lines();
    loop {
        let mut range = None;
        let mut is_head = false;
        loop {
            let Some(Ok(line)) = lines.next() else { return };
            is_head |= line.starts_with("HEAD ");
            if line.is_empty() {
                break;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("range: bytes=") {
                let (from, to) = value.split_once('-').unwrap();
                range = Some((
                    from.parse::<usize>().unwrap(),
                    to.parse::<usize>().unwrap() + 1,
                ));
            }
        }
        if is_head {
            // As for a URL that is signed for GET alone.
            let refusal = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n";
            if stream.write_all(refusal).is_err() {
                return;
            }
            continue;
        }
        let (from, to) = range.unwrap_or((0, bytes.len()));
        if from >= silent_from {
            continue;
        }
        let to = to.min(bytes.len());
        let status = if range.is_some() {
            "206 Partial Content"
        } else {
            "200 OK"
        };
        let part = match range {
            Some(_) => format!("Content-Range: bytes {from}-{}/{}\r\n", to - 1, bytes.len()),
            None => String::new(),
        };
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Length: {}\r\nETag: \"1\"\r\n{part}\r\n",
            to - from
        );
        if stream
            .write_all(head.as_bytes())
            .and_then(|()| stream.write_all(&bytes[from..to]))
            .is_err()
        {
            return;
        }
    }
}

/// Shards of so many samples, numbered through.
pub struct Data {
    _folder: tempfile::TempDir,
    pub urls: Vec<String>,
    pub counted: Counted,
}

impl Data {
    pub fn new(counts: &[u64]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (mut urls, mut starts, mut number) = (Vec::new(), Vec::new(), 0);
        for (at, &count) in counts.iter().enumerate() {
            let end = number + usize::try_from(count).unwrap();
            let samples: Vec<(String, String)> = numbered(number..end);
            let url = write(
                folder.path(),
                &format!("{at:02}.tar"),
                &shard(&samples, 100),
            );
            starts.push(Some(starts_of(&url).into()));
            urls.push(url);
            number = end;
        }
        let counted = Counted {
            samples: Vec::from(counts),
            starts,
        };
        Self {
            _folder: folder,
            urls,
            counted,
        }
    }

    pub fn loader(&self) -> Loader {
        onecopy::open(self.urls.clone(), config(16 * MIB))
            .decode(None)
            .fields(["cls"])
    }
}

/// Where the samples of a shard begin, and where the last one ends.
pub fn starts_of(url: &str) -> Vec<u64> {
    let mut starts = vec![0];
    let samples = onecopy::open([url], config(4 * MIB)).run_samples().unwrap();
    for sample in samples {
        starts.push(sample.unwrap().end_offset);
    }
    starts
}

/// The labels of each batch.
pub fn batches(loader: Loader) -> Vec<Vec<i64>> {
    all(loader).iter().map(labels).collect()
}
