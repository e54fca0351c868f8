//! A folder and a server with shards, and the index of them.

use std::collections::BTreeMap;
use std::fs;

use onecopy::buffer::Slice;
use onecopy::config::{Limits, StoreConfig, Variables};
use onecopy::ledger::Ledger;
use onecopy::pack::{IndexObserver, IndexSettings, IndexSummary, index};
use onecopy::sample::index::{DatasetIndex, Offsets};
use onecopy::sample::{Sample, SampleOptions, SampleReader};
use onecopy::store::Object;
use onecopy::sync::{Arc, AtomicBool, AtomicUsize, Mutex, Ordering};
use onecopy::transfer::Stop;
use onecopy::{ErrorKind, Result};
use onecopy_testkit::s3::S3Server;
use onecopy_testkit::tar::TarWriter;
use tempfile::TempDir;

pub(crate) struct World {
    pub(crate) server: S3Server,
    pub(crate) folder: TempDir,
    pub(crate) settings: IndexSettings,
}

/// What was told of the shards; stops the index after a number of them.
#[derive(Debug, Default)]
pub(crate) struct Told {
    failed: Mutex<BTreeMap<String, (ErrorKind, String)>>,
    stop: Arc<AtomicBool>,
    left: AtomicUsize,
}

impl IndexObserver for Told {
    fn planned(&self, _shards: u64) {}

    fn shard(&self, url: &str, error: Option<&onecopy::Error>) {
        if let Some(error) = error {
            let told = (error.kind(), error.to_string());
            self.failed.lock().insert(url.to_owned(), told);
        }
        if self.left.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.stop.store(true, Ordering::SeqCst);
        }
    }
}

/// How an index ended.
pub(crate) struct Ended {
    pub(crate) result: Result<IndexSummary>,
    pub(crate) failed: BTreeMap<String, (ErrorKind, String)>,
}

impl Ended {
    /// Shards, samples, taken over, failed.
    #[track_caller]
    pub(crate) fn counts(&self) -> [u64; 4] {
        let summary = self.result.as_ref().unwrap();
        [
            summary.shards,
            summary.samples,
            summary.reused,
            summary.failed,
        ]
    }
}

impl World {
    pub(crate) fn new() -> Self {
        let server = S3Server::builder().anonymous(true).start().unwrap();
        server.create_bucket("bkt").unwrap();
        let store = StoreConfig {
            endpoint_url: Some(server.endpoint()),
            variables: Variables::only([
                ("AWS_ACCESS_KEY_ID", "onecopy"),
                ("AWS_SECRET_ACCESS_KEY", "onecopy-secret"),
                ("AWS_EC2_METADATA_DISABLED", "true"),
            ]),
            limits: Limits {
                tries: 2,
                connections: 4,
                ..Limits::default()
            },
            ..StoreConfig::default()
        };
        Self {
            server,
            folder: TempDir::new().unwrap(),
            settings: IndexSettings {
                store,
                memory_bytes: Some(32 << 20),
                ..IndexSettings::default()
            },
        }
    }

    pub(crate) fn put(&self, key: &str, bytes: Vec<u8>) {
        self.server.put("bkt", key, bytes).unwrap();
    }

    pub(crate) fn get(&self, key: &str) -> Option<Vec<u8>> {
        self.server.get("bkt", key).unwrap().map(Into::into)
    }

    /// Writes a file, and gives its path.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> String {
        let path = self.folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    pub(crate) fn read(&self, name: &str) -> Option<Vec<u8>> {
        fs::read(self.folder.path().join(name)).ok()
    }

    pub(crate) fn index(&self, urls: &[&str]) -> Ended {
        self.index_some(urls, usize::MAX)
    }

    /// Indexes, and stops after `most` shards.
    pub(crate) fn index_some(&self, urls: &[&str], most: usize) -> Ended {
        let urls: Vec<String> = urls.iter().map(|url| (*url).to_owned()).collect();
        let told = Arc::new(Told {
            left: AtomicUsize::new(most),
            ..Told::default()
        });
        let observer: Arc<dyn IndexObserver> = Arc::<Told>::clone(&told);
        let stop = Stop::at(Arc::clone(&told.stop));
        let result = index(&urls, &self.settings, &observer, &stop);
        let failed = std::mem::take(&mut *told.failed.lock());
        Ended { result, failed }
    }

    /// The index of the folder.
    #[track_caller]
    pub(crate) fn local(&self, name: &str) -> DatasetIndex {
        DatasetIndex::read_wids(name, &self.read(name).unwrap()).unwrap()
    }

    /// An index in the bucket.
    #[track_caller]
    pub(crate) fn remote(&self, key: &str) -> DatasetIndex {
        DatasetIndex::read_wids(key, &self.get(key).unwrap()).unwrap()
    }

    /// The object as a listing tells of it.
    pub(crate) fn object(&self, key: &str) -> Object {
        let etag = self.server.etag("bkt", key).unwrap().unwrap();
        Object {
            url: format!("s3://bkt/{key}").into(),
            key: onecopy::store::Key::new(key),
            version: None,
            len_bytes: self.get(key).map(|bytes| bytes.len() as u64),
            etag: Some(onecopy::store::ETag(etag.into())),
            modified_unix: None,
        }
    }
}

/// A shard of `samples` with a label and `len` bytes each, whose keys begin with `key`.
pub(crate) fn shard(key: &str, samples: usize, len: usize) -> Vec<u8> {
    let mut tar = TarWriter::new();
    for number in 0..samples {
        tar.file(&format!("{key}{number:04}.bin"), &vec![7; len]);
        tar.file(&format!("{key}{number:04}.cls"), b"1");
    }
    tar.finish()
}

/// What the reader of samples makes of a shard from byte `start` on.
pub(crate) fn samples_from(
    url: &str,
    bytes: &[u8],
    start: u64,
    options: &SampleOptions,
) -> Result<Vec<Sample>> {
    let bytes = bytes.get(usize::try_from(start).unwrap()..).unwrap();
    let len = Some(bytes.len() as u64);
    let pieces = [Ok(Slice::from_vec(Vec::from(bytes)))];
    let ledger = Ledger::unread();
    SampleReader::new(
        url.into(),
        len,
        pieces.into_iter(),
        options.clone(),
        &ledger,
    )
    .collect()
}

/// Holds offsets against what the reader of samples finds: a reader that begins at each of them finds the same samples.
#[track_caller]
pub(crate) fn hold(idx: &[u8], bytes: &[u8], options: &SampleOptions) {
    let offsets = Offsets::read_dali("t.idx", idx).unwrap();
    let all = samples_from("t.tar", bytes, 0, options).unwrap();
    assert_eq!(offsets.len(), all.len());
    for (place, sample) in all.iter().enumerate() {
        let start = offsets.start(place).unwrap();
        assert!(start <= sample.offset, "{start} {}", sample.offset);
        assert!(place == 0 || all[place - 1].end_offset == start);
        let found = samples_from("t.tar", bytes, start, options).unwrap();
        assert_eq!(found.len(), all.len() - place);
        assert_eq!(found[0].key, sample.key);
        assert_eq!(found[0].offset + start, sample.offset);
        assert_eq!(found[0].fields.len(), sample.fields.len());
    }
    assert_eq!(
        offsets.end(),
        all.last().map_or(0, |sample| sample.end_offset)
    );
}
