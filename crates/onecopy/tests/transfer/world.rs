//! A server, a folder, and what a transfer between them told.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use onecopy::config::{Limits, StoreConfig, Variables};
use onecopy::sync::{Arc, Mutex};
use onecopy::transfer::{
    CopySettings, Filter, Item, Observer, Settings, Stop, Summary, SyncSettings, copy, sync,
};
use onecopy::{ErrorKind, Result};
use onecopy_testkit::s3::S3Server;
use tempfile::TempDir;

pub(crate) struct World {
    pub(crate) server: S3Server,
    pub(crate) folder: TempDir,
    pub(crate) settings: Settings,
}

/// What was told of the items: `cp source target`, sorted; and the kinds of errors by source.
#[derive(Debug, Default)]
pub(crate) struct Told {
    done: Mutex<Vec<String>>,
    failed: Mutex<BTreeMap<String, (ErrorKind, String)>>,
}

impl Observer for Told {
    fn item(&self, item: &Item<'_>) {
        match item.error {
            None => {
                let target = item.target.map(|target| format!(" {target}"));
                let line = format!(
                    "{} {}{}",
                    item.action.name(),
                    item.source,
                    target.unwrap_or_default()
                );
                self.done.lock().push(line);
            }
            Some(error) => {
                let told = (error.kind(), format!("{error:#}"));
                self.failed.lock().insert(item.source.to_owned(), told);
            }
        }
    }

    fn moved(&self, _bytes: u64) {}
}

pub(crate) struct Ended {
    pub(crate) result: Result<Summary>,
    pub(crate) done: Vec<String>,
    pub(crate) failed: BTreeMap<String, (ErrorKind, String)>,
}

impl Ended {
    /// Copied, deleted, unchanged, failed.
    #[track_caller]
    pub(crate) fn counts(&self) -> [u64; 4] {
        let summary = self.result.as_ref().unwrap();
        [
            summary.copied,
            summary.deleted,
            summary.unchanged,
            summary.failed,
        ]
    }

    #[track_caller]
    pub(crate) fn hop(&self, name: &str) -> u64 {
        let report = &self.result.as_ref().unwrap().ledger;
        let found = report.hops.iter().find(|hop| hop.hop == name);
        found.map_or(0, |hop| hop.bytes)
    }

    pub(crate) fn why(&self, source: &str) -> &str {
        self.failed.get(source).map_or("", |(_, why)| why)
    }
}

impl World {
    pub(crate) fn new() -> Self {
        let server = S3Server::builder().start().unwrap();
        server.create_bucket("bkt").unwrap();
        Self::at(server)
    }

    fn at(server: S3Server) -> Self {
        let mut settings = settings(&server.endpoint());
        settings.range_bytes = 64 << 10;
        Self {
            server,
            folder: TempDir::new().unwrap(),
            settings,
        }
    }

    pub(crate) fn put(&self, key: &str, bytes: impl Into<Vec<u8>>) {
        self.server.put("bkt", key, bytes.into()).unwrap();
    }

    pub(crate) fn get(&self, key: &str) -> Option<Vec<u8>> {
        self.server.get("bkt", key).unwrap().map(Into::into)
    }

    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.folder.path().join(relative)
    }

    pub(crate) fn text(&self, relative: &str) -> String {
        self.path(relative).to_str().unwrap().to_owned()
    }

    pub(crate) fn write(&self, relative: &str, bytes: impl AsRef<[u8]>) {
        let path = self.path(relative);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    pub(crate) fn cp(&self, sources: &[&str], target: &str, how: &CopySettings) -> Ended {
        self.stopped_cp(sources, target, how, &Stop::default())
    }

    pub(crate) fn recursive(&self, source: &str, target: &str) -> Ended {
        let how = CopySettings {
            is_recursive: true,
            ..CopySettings::default()
        };
        self.cp(&[source], target, &how)
    }

    pub(crate) fn stopped_cp(
        &self,
        sources: &[&str],
        target: &str,
        how: &CopySettings,
        stop: &Stop,
    ) -> Ended {
        let sources: Vec<String> = sources.iter().map(|text| (*text).to_owned()).collect();
        told(|observer| copy(&sources, target, &self.settings, how, observer, stop))
    }

    pub(crate) fn sync(&self, source: &str, target: &str, how: &SyncSettings) -> Ended {
        told(|observer| {
            sync(
                source,
                target,
                &self.settings,
                how,
                observer,
                &Stop::default(),
            )
        })
    }

    pub(crate) fn filter(&mut self, rules: &[(bool, &str)]) {
        let mut filter = Filter::default();
        for (is_included, pattern) in rules {
            filter.add(*is_included, pattern).unwrap();
        }
        self.settings.filter = filter;
    }

    /// Every file below the folder, by its relative path.
    pub(crate) fn files(&self) -> Vec<String> {
        let mut found = Vec::new();
        walk(self.folder.path(), self.folder.path(), &mut found);
        found.sort();
        found
    }
}

pub(crate) fn told(run: impl FnOnce(&Arc<dyn Observer>) -> Result<Summary>) -> Ended {
    let told = Arc::new(Told::default());
    let observer: Arc<dyn Observer> = Arc::<Told>::clone(&told);
    let result = run(&observer);
    let mut done = std::mem::take(&mut *told.done.lock());
    done.sort();
    let failed = std::mem::take(&mut *told.failed.lock());
    Ended {
        result,
        done,
        failed,
    }
}

pub(crate) fn settings(endpoint: &str) -> Settings {
    Settings {
        store: StoreConfig {
            endpoint_url: Some(endpoint.to_owned()),
            variables: Variables::only([
                ("AWS_ACCESS_KEY_ID", "onecopy"),
                ("AWS_SECRET_ACCESS_KEY", "onecopy-secret"),
                ("AWS_EC2_METADATA_DISABLED", "true"),
            ]),
            limits: Limits {
                tries: 3,
                connections: 4,
                ..Limits::default()
            },
            ..StoreConfig::default()
        },
        memory_bytes: Some(64 << 20),
        is_locking: false,
        ..Settings::default()
    }
}

fn walk(root: &Path, folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.is_symlink() {
            walk(root, &path, found);
        } else {
            let relative = path.strip_prefix(root).unwrap();
            found.push(relative.to_string_lossy().into_owned());
        }
    }
}

/// Bytes that differ at every offset that a mistake is likely to hit.
pub(crate) fn bytes(len: usize) -> Vec<u8> {
    (0..len)
        .map(|at| (at ^ (at >> 8) ^ (at >> 16)).to_le_bytes()[0])
        .collect()
}
