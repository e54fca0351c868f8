//! What becomes of errors, at every stage and by every policy: raised, counted and logged, counted, or as a handler says;
//! and no more of them than may be.
#![expect(clippy::unwrap_used, clippy::panic, reason = "test helpers")]

mod loads_support;

use std::path::Path;
use std::sync::{Arc, Mutex};

use loads_support::*;
use onecopy::config::{Answer, Handler, LoadConfig, OnError};
use onecopy::ledger::Skipped;
use onecopy::{Error, ErrorKind, Loader, Result};
use onecopy_testkit::tar::TarWriter;

/// A one-dimensional array of `len` bytes.
fn npy(len: usize) -> Vec<u8> {
    let header = format!("{{'descr': '|u1', 'fortran_order': False, 'shape': ({len},), }}\n");
    let mut bytes = Vec::from(*b"\x93NUMPY\x01\x00");
    bytes.extend(u16::try_from(header.len()).unwrap().to_le_bytes());
    bytes.extend(header.bytes());
    bytes.resize(bytes.len() + len, 0);
    bytes
}

/// A shard with one sample a letter, the key of which is `name`, letter and place: `.` is a good one, labelled 1.
fn shard_of(name: &str, letters: &str) -> TarWriter {
    let mut tar = TarWriter::new();
    for (place, letter) in letters.chars().enumerate() {
        let key = format!("{name}{letter}{place}").replace('.', "_");
        let label: &[u8] = if letter == 'c' { b"cat" } else { b"1" };
        if letter != 'l' {
            tar.file(&format!("{key}.cls"), label);
        }
        if letter == 'd' {
            tar.file(&format!("{key}.cls"), label);
        }
        tar.file(
            &format!("{key}.npy"),
            &npy(if letter == 'o' { 5 } else { 4 }),
        );
    }
    tar
}

/// A stage at which something is left out, and what the ledger says of it.
struct Stage {
    name: &'static str,
    letters: &'static str,
    kind: ErrorKind,
    cause: &'static str,
    lost: (u64, u64),
    good: usize,
}

const STAGES: [Stage; 6] = [
    Stage {
        name: "read",
        letters: "..d..",
        kind: ErrorKind::Corrupt,
        cause: "duplicate_field",
        lost: (1, 0),
        good: 4,
    },
    Stage {
        name: "pick",
        letters: "..l..",
        kind: ErrorKind::NotFound,
        cause: "not_found",
        lost: (1, 0),
        good: 4,
    },
    Stage {
        name: "lay",
        letters: "..o..",
        kind: ErrorKind::InvalidInput,
        cause: "invalid_input",
        lost: (1, 0),
        good: 4,
    },
    Stage {
        name: "decode",
        letters: "..c..",
        kind: ErrorKind::Corrupt,
        cause: "corrupt",
        lost: (1, 0),
        good: 4,
    },
    // Cut in its last member: the sample is lost, and the rest of the shard.
    Stage {
        name: "cut",
        letters: ".....",
        kind: ErrorKind::Truncated,
        cause: "truncated",
        lost: (1, 1),
        good: 4,
    },
    Stage {
        name: "gone",
        letters: "",
        kind: ErrorKind::NotFound,
        cause: "not_found",
        lost: (0, 1),
        good: 0,
    },
];

/// Everything that goes wrong, together: the number of samples and shards that are left out.
const ALL: u64 = 7;

impl Stage {
    /// Writes its shard, and gives the URL.
    fn write(&self, folder: &Path) -> String {
        let file = format!("{}.tar", self.name);
        let bytes = match self.name {
            "gone" => return folder.join(file).display().to_string(),
            "cut" => {
                let mut bytes = shard_of(self.name, self.letters).cut();
                bytes.truncate(bytes.len() - 500);
                bytes
            }
            _ => shard_of(self.name, self.letters).finish(),
        };
        write(folder, &file, &bytes)
    }
}

fn loader(urls: &[String], on_error: OnError, max_skipped: Option<u64>) -> Loader {
    let config = LoadConfig {
        on_error,
        max_skipped,
        ..config(4 * MIB)
    };
    onecopy::open(urls.iter().cloned(), config)
        .decode(None)
        .fields(["cls", "npy"])
        .batch(3, false)
}

/// How many samples came, what was left out, and the error, if any.
fn run(loader: Loader) -> (usize, Skipped, Option<Error>) {
    let mut load = match loader.run() {
        Ok(load) => load,
        // What is known to be missing before anything is read.
        Err(error) => return (0, Skipped::default(), Some(error)),
    };
    let mut came = 0;
    let mut failed = None;
    for batch in load.by_ref() {
        match batch {
            Ok(batch) => came += batch.len,
            Err(error) => assert!(
                failed.replace(error).is_none(),
                "nothing comes after an error"
            ),
        }
    }
    (came, load.report().skipped, failed)
}

/// What a handler was asked about: kind, shard and key.
type Asked = Arc<Mutex<Vec<(ErrorKind, Option<String>, Option<String>)>>>;

/// A handler that says `answer` each time, and what it is asked about.
fn asking(answer: impl Fn() -> Result<Answer> + Send + Sync + 'static) -> (OnError, Asked) {
    let asked = Asked::default();
    let seen = Arc::clone(&asked);
    let handler = Handler::new(move |error| {
        let (shard, key) = (error.shard(), error.key());
        let about = (
            error.kind(),
            shard.map(str::to_owned),
            key.map(str::to_owned),
        );
        seen.lock().unwrap().push(about);
        answer()
    });
    (OnError::Ask(handler), asked)
}

fn urls_of_all(folder: &Path) -> Vec<String> {
    STAGES.iter().map(|stage| stage.write(folder)).collect()
}

#[test]
fn every_stage_does_as_the_policy_says_and_counts_once_under_its_cause() {
    let folder = tempfile::tempdir().unwrap();
    for stage in STAGES {
        let name = stage.name;
        let urls = [stage.write(folder.path())];
        let lost = stage.lost.0 + stage.lost.1;
        let (skipping, asked) = asking(|| Ok(Answer::Skip));
        let (warning, _) = asking(|| Ok(Answer::Warn));
        for policy in [OnError::Skip, OnError::Warn, skipping, warning] {
            let (came, skipped, error) = run(loader(&urls, policy, Some(lost)));
            assert!(error.is_none(), "{name}: {error:?}");
            assert_eq!(came, stage.good, "{name}");
            assert_eq!((skipped.samples, skipped.shards), stage.lost, "{name}");
            let by_cause: Vec<_> = skipped.by_cause.iter().collect();
            assert_eq!(by_cause, [(&stage.cause.to_owned(), &lost)], "{name}");
        }
        let asked = std::mem::take(&mut *asked.lock().unwrap());
        assert_eq!(asked.len() as u64, lost, "{name}");
        for (kind, shard, key) in &asked {
            assert_eq!(*kind, stage.kind, "{name}");
            assert!(
                shard.as_ref().unwrap().ends_with(&format!("{name}.tar")),
                "{shard:?}"
            );
            assert!(
                key.as_ref().is_none_or(|key| key.starts_with(name)),
                "{key:?}"
            );
        }
        let keys = asked.iter().filter(|(_, _, key)| key.is_some()).count();
        assert_eq!(keys as u64, stage.lost.0, "{name}");
        let (raising, asked) = asking(|| Ok(Answer::Raise));
        for policy in [OnError::Raise, raising] {
            let (_, skipped, error) = run(loader(&urls, policy, None));
            assert_eq!(error.unwrap().kind(), stage.kind, "{name}");
            assert!(skipped.is_empty(), "{name}: {skipped:?}");
        }
        assert_eq!(asked.lock().unwrap().len(), 1, "{name}");
    }
}

#[test]
fn what_is_left_out_at_all_stages_counts_against_one_number() {
    let folder = tempfile::tempdir().unwrap();
    let urls = urls_of_all(folder.path());
    let (_, raised, first) = run(loader(&urls, OnError::Raise, None));
    assert!(raised.is_empty());
    let (came_of_all, all, error) = run(loader(&urls, OnError::Skip, None));
    assert!(error.is_none(), "{error:?}");
    assert_eq!((all.samples, all.shards), (5, 2));
    for max in 0..ALL + 2 {
        let (asked, _) = asking(|| Ok(Answer::Skip));
        for policy in [OnError::Skip, asked] {
            let (came, skipped, error) = run(loader(&urls, policy, Some(max)));
            assert_eq!(skipped.samples + skipped.shards, max.min(ALL), "{max}");
            if max >= ALL {
                assert!(error.is_none(), "{max}: {error:?}");
                assert_eq!((came, &skipped.by_cause), (came_of_all, &all.by_cause));
                continue;
            }
            let text = format!("{:#}", error.unwrap());
            if max == 0 {
                assert_eq!(text, format!("{:#}", first.as_ref().unwrap()));
                continue;
            }
            assert_eq!(skipped.max_skipped, Some(max));
            let causes: Vec<String> = skipped
                .by_cause
                .iter()
                .map(|(cause, count)| format!("{cause} {count}"))
                .collect();
            let told = format!("({})", causes.join(", "));
            assert!(
                text.contains("; left out before it: ") && text.contains(&told),
                "{text}"
            );
            assert!(
                text.contains(&format!("help: `max_skipped={max}` is spent")),
                "{text}"
            );
        }
    }
}

#[test]
fn a_burst_of_samples_that_do_not_decode_ends_the_load_behind_as_many_as_may_be() {
    let folder = tempfile::tempdir().unwrap();
    // Half of them fail, side by side on all decoders, and in the reader before them.
    let urls: Vec<String> = (0..4)
        .map(|part| {
            let bytes = shard_of(&part.to_string(), &".c.d".repeat(100)).finish();
            write(folder.path(), &format!("{part}.tar"), &bytes)
        })
        .collect();
    for (max, shuffle) in [(1, 0), (100, 0), (399, 50), (799, 0), (800, 50)] {
        let config = LoadConfig {
            on_error: OnError::Skip,
            max_skipped: Some(max),
            decode_threads: Some(4),
            ..config(16 * MIB)
        };
        let load = onecopy::open(urls.clone(), config).decode(None);
        let (came, skipped, error) = run(load.shuffle(shuffle, 1).batch(16, false));
        assert_eq!(skipped.samples, max, "{max}");
        assert_eq!(skipped.by_cause.values().sum::<u64>(), max);
        match error {
            None => assert_eq!((max, came), (800, 800)),
            Some(error) => {
                assert_eq!(error.kind(), ErrorKind::Corrupt);
                assert!(
                    error.help().unwrap().contains("is spent"),
                    "{max}: {error:?}"
                );
            }
        }
    }
}

#[test]
fn an_error_of_a_handler_ends_the_load_in_place_of_the_one_it_was_asked_about() {
    let folder = tempfile::tempdir().unwrap();
    for stage in STAGES {
        let urls = [stage.write(folder.path())];
        let (failing, asked) = asking(|| {
            Err(Error::new(
                ErrorKind::Unsupported,
                "decide about",
                "it",
                "nobody knows",
            ))
        });
        let (_, skipped, error) = run(loader(&urls, failing, None));
        let error = error.unwrap();
        assert_eq!(
            error.to_string(),
            "could not decide about it: nobody knows",
            "{}",
            stage.name
        );
        assert!(skipped.is_empty());
        assert_eq!(asked.lock().unwrap().len(), 1, "{}", stage.name);
    }
}

#[test]
fn a_shard_without_its_end_mark_costs_nothing_of_what_may_be_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let urls = [write(folder.path(), "a.tar", &shard_of("a", "...").cut())];
    let (skipping, asked) = asking(|| Ok(Answer::Skip));
    for policy in [OnError::Skip, skipping] {
        let mut load = loader(&urls, policy, Some(0)).run().unwrap();
        assert_eq!(
            load.by_ref().map(|batch| batch.unwrap().len).sum::<usize>(),
            3
        );
        let report = load.report();
        assert_eq!(report.warnings.get("missing_eof"), Some(&1));
        assert!(report.skipped.is_empty());
    }
    assert_eq!(asked.lock().unwrap().len(), 1);
    let (raising, _) = asking(|| Ok(Answer::Raise));
    let (came, _, error) = run(loader(&urls, raising, None));
    assert_eq!((came, error.unwrap().kind()), (3, ErrorKind::Truncated));
}

#[test]
fn samples_that_nobody_batches_are_left_out_by_the_same_rules() {
    let folder = tempfile::tempdir().unwrap();
    let urls =
        [shard_of("a", ".d.d.d.").finish()].map(|bytes| write(folder.path(), "a.tar", &bytes));
    for (max, came) in [(None, 4), (Some(3), 4), (Some(2), 3), (Some(0), 1)] {
        let mut load = loader(&urls, OnError::Skip, max).run_samples().unwrap();
        let samples: Vec<_> = load.by_ref().collect();
        let good = samples.iter().filter(|sample| sample.is_ok()).count();
        assert_eq!(
            (good, samples.len() - good),
            (came, usize::from(max.is_some_and(|max| max < 3)))
        );
        assert_eq!(load.report().skipped.samples, max.unwrap_or(3));
    }
}

#[test]
fn a_number_that_may_be_left_out_where_nothing_may_is_refused() {
    let error = loader(&["a.tar".to_owned()], OnError::Raise, Some(3)).run();
    let error = error.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(
        error.help().unwrap().contains("`on_error=skip`"),
        "{error:?}"
    );
}
