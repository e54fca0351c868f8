//! Every wait comes to its end: what is never answered is an error that says what was waited for, and no thread stays.
#![expect(clippy::unwrap_used, clippy::panic, reason = "test helpers")]

mod loads_support;

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use loads_support::*;
use onecopy::config::{Answer, Handler, Limits, LoadConfig, OnError};
use onecopy::pipeline::Next;
use onecopy::sync::channel;
use onecopy::{Error, ErrorKind, Loader};
use onecopy_testkit::tar::TarWriter;

/// Short, so that tests are; nothing here asserts how long anything takes.
const SHORT: Duration = Duration::from_millis(300);

/// How long the end of a thread is waited for before it counts as hanging.
const LONG: Duration = Duration::from_secs(60);

fn short(memory: usize) -> LoadConfig {
    LoadConfig {
        wait_limit: Some(SHORT),
        ..config(memory)
    }
}

/// The names of the threads that the engine has in this process: each test is a process of its own.
fn threads() -> Vec<String> {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    let names = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("comm")).ok());
    let names = names.map(|name| name.trim().to_owned());
    names.filter(|name| name.starts_with("onecopy")).collect()
}

fn await_no_threads() {
    let end = Instant::now() + LONG;
    while !threads().is_empty() && Instant::now() < end {
        std::thread::yield_now();
    }
    assert_eq!(threads(), Vec::<String>::new());
}

/// Waits for the error that ends a load.
fn error_of<T>(mut load: impl Iterator<Item = Result<T, Error>>) -> Error {
    load.find_map(Result::err).unwrap()
}

/// A shard whose second sample is damaged.
fn damaged() -> Vec<u8> {
    let mut tar = TarWriter::new();
    for label in ["1", "cat", "3"] {
        tar.file(&format!("s{label}.cls"), label.as_bytes());
        tar.file(&format!("s{label}.bin"), b"1");
        if label == "cat" {
            tar.file(&format!("s{label}.bin"), b"twice");
        }
    }
    tar.finish()
}

/// A function that is asked and does not answer before it is let go.
fn silent() -> (OnError, channel::Receiver<()>, channel::Sender<()>) {
    let (asked, asking) = channel::bounded(1);
    let (let_go, held) = channel::bounded::<()>(0);
    let handler = Handler::new(move |_| {
        asked.send(()).unwrap();
        let _let_go = held.recv();
        Ok(Answer::Skip)
    });
    (OnError::Ask(handler), asking, let_go)
}

fn loader(url: &str, on_error: OnError) -> Loader {
    let config = LoadConfig {
        on_error,
        ..short(4 * MIB)
    };
    onecopy::open([url], config).fields(["cls"]).batch(2, false)
}

#[test]
fn a_function_that_never_answers_is_named_with_what_it_was_asked() {
    let folder = tempfile::tempdir().unwrap();
    let url = write(folder.path(), "a.tar", &damaged());
    let (on_error, asked, let_go) = silent();
    let mut load = loader(&url, on_error).run().unwrap();
    let error = error_of(load.by_ref());
    asked.recv().unwrap();
    assert_eq!(error.kind(), ErrorKind::LimitReached);
    let text = format!("{error:#}");
    assert!(text.contains("nothing moved for"), "{text}");
    assert!(
        text.contains("the answer of the function of on_error about this: could not"),
        "{text}"
    );
    assert!(text.contains("scat"), "{text}");
    assert!(text.contains("`wait_limit`"), "{text}");
    assert!(load.next().is_none(), "nothing comes after an error");
    // The thread that asked is left behind, and said to be; it ends once it is answered.
    let ledger = onecopy::sync::Arc::clone(load.ledger());
    drop(load);
    let notes = ledger.report().notes;
    let left = notes
        .iter()
        .find(|note| note.contains("left behind: onecopy-sample"));
    assert!(
        left.unwrap()
            .contains("the answer of the function of on_error"),
        "{notes:?}"
    );
    assert!(threads().contains(&"onecopy-sample".to_owned()));
    drop(let_go);
    await_no_threads();
}

#[test]
fn closing_a_load_does_not_wait_for_ever_for_a_function() {
    let folder = tempfile::tempdir().unwrap();
    let url = write(folder.path(), "a.tar", &damaged());
    let (on_error, asked, let_go) = silent();
    let load = loader(&url, on_error).run_samples().unwrap();
    asked.recv().unwrap();
    let ledger = onecopy::sync::Arc::clone(load.ledger());
    drop(load);
    let notes = ledger.report().notes;
    assert!(
        notes
            .iter()
            .any(|note| note.contains("left behind: onecopy-sample")),
        "{notes:?}"
    );
    drop(let_go);
    await_no_threads();
}

#[test]
fn memory_that_the_caller_holds_is_named() {
    let folder = tempfile::tempdir().unwrap();
    // Four times as much as the memory.
    let url = write(folder.path(), "a.tar", &shard(&numbered(0..64), MIB));
    let mut load = onecopy::open([url], short(16 * MIB)).run_samples().unwrap();
    let mut kept = Vec::new();
    let error = loop {
        match load.next().unwrap() {
            Ok(sample) => kept.push(sample),
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::LimitReached);
    let text = format!("{error:#}");
    assert!(text.contains("waiting for memory of the pool"), "{text}");
    assert!(text.contains("raise `memory`"), "{text}");
    assert!(load.next().is_none(), "nothing comes after an error");
    drop((load, kept));
    await_no_threads();
}

#[test]
fn a_consumer_that_takes_its_time_is_no_wait() {
    let folder = tempfile::tempdir().unwrap();
    let url = write(folder.path(), "a.tar", &shard(&numbered(0..64), MIB / 4));
    let config = LoadConfig {
        wait_limit: Some(Duration::from_millis(40)),
        ..config(8 * MIB)
    };
    let mut load = onecopy::open([url], config).batch(4, false).run().unwrap();
    let mut came = 0;
    loop {
        match load.next_within(Duration::from_millis(1)).unwrap() {
            Next::Batch(batch) => came += batch.len,
            Next::End => break,
            Next::NotYet => {}
        }
        // All that may be read ahead is there, so that nothing moves; nobody waits for it either.
        std::thread::park_timeout(Duration::from_millis(60));
    }
    assert_eq!(came, 64);
}

#[test]
fn a_store_that_is_silent_ends_by_its_own_limits_and_says_so_itself() {
    let url = serve(shard(&numbered(0..8), MIB), 2 * MIB);
    let mut config = short(64 * MIB);
    config.range_bytes = Some(MIB);
    config.store.limits = Limits {
        tries: 3,
        budget: Duration::from_secs(20),
        connect_timeout: SHORT,
        first_byte_timeout: SHORT,
        stall_timeout: SHORT,
        ..Limits::default()
    };
    let mut load = onecopy::open([url], config).batch(1, false).run().unwrap();
    let error = error_of(load.by_ref());
    assert_eq!(error.kind(), ErrorKind::Unreachable);
    assert!(
        error.to_string().contains("gave up after 3 tries"),
        "{error}"
    );
}

#[test]
fn a_list_that_nobody_writes_is_named_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("urls");
    let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let mut config = short(4 * MIB);
    config.store.limits = Limits {
        budget: Duration::ZERO,
        connect_timeout: Duration::ZERO,
        first_byte_timeout: SHORT,
        stall_timeout: Duration::ZERO,
        ..Limits::default()
    };
    let list = format!("@{}", pipe.display());
    let error = onecopy::open([list.clone()], config.clone())
        .run()
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable);
    let text = error.to_string();
    let named = format!("waiting for the list {} (", pipe.display());
    assert!(text.contains(&named), "{text}");
    // The same for a plan. Both are left behind, and end once somebody writes.
    assert!(onecopy::open([list], config).plan().is_err());
    let waiting = threads().into_iter().filter(|name| name == "onecopy-start");
    assert_eq!(waiting.count(), 2);
    fs::write(pipe, "").unwrap();
    await_no_threads();
}
