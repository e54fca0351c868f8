//! The `onecopy` command as a library: the binary and the Python package both call [`run`].
//!
//! ```text
//!  argv --args--> what was typed --commands--> a value --output--> text or JSON on stdout
//!                                     |
//!                                     +--progress--> stderr
//! ```
//!
//! | module | what it does |
//! |---|---|
//! | `args` | what was typed, and nothing else |
//! | `commands` | one file or folder per command: turns what was typed into a call of the engine |
//! | `exit` | what the exit codes mean |
//! | `interrupt` | Ctrl-C and other signals that end a command |
//! | `open_files` | the limit of open files |
//! | `output` | the only one that writes to stdout, and the one that prints errors |
//! | `progress` | the only one that draws on stderr |
//! | `stdout` | stdout as the kernel sees it: closed, full, or read by nobody |
//! | `words` | the engine's settings as flags |
//!
//! Absent: any knowledge of S3, tar or pictures. That is the engine's.

mod args;
mod commands;
mod exit;
mod interrupt;
mod open_files;
mod output;
mod progress;
mod stdout;
mod words;

use std::ffi::OsString;

use clap::Parser;
use onecopy::Error;

use args::Args;
use commands::{Context, Outcome};
use exit::Exit;
use interrupt::Interrupt;
use output::Output;
use progress::Progress;
use stdout::Reader;

/// Runs the command with `args`, the first of which is the name of the program, and gives its exit
/// code: 0 done and true, 1 ran but the answer is no or some items failed, 2 could not run, 128 and
/// the number of the signal if one ended it, 141 if whoever read stdout went away before it had everything.
///
/// Results go to stdout; progress, logs and errors to stderr. It raises the process's soft limit of
/// open files to the hard one. It catches SIGINT, SIGTERM and SIGHUP while it runs and returns within
/// a second of one; a thread that still waits for the network may then outlive the call, so the
/// process should end.
pub fn run(args: impl IntoIterator<Item = OsString>) -> u8 {
    let typed: Vec<OsString> = args.into_iter().collect();
    match Args::try_parse_from(&typed) {
        Ok(args) => run_parsed(args).code(),
        Err(refusal) => output::refuse(&refusal, &typed).code(),
    }
}

fn run_parsed(args: Args) -> Exit {
    let output = Output::new(
        args.shown.is_json,
        args.shown.is_verbose,
        args.command.has_bytes_on_stdout(),
    );
    if let Err(error) = output::log_to_stderr(args.shown.log.as_deref()) {
        return output.fail(&error);
    }
    let is_silent = args.shown.is_quiet && !args.shown.is_json && args.command.is_quiet_able();
    if let Err(error) = stdout::check()
        && !is_silent
    {
        return output.fail(&error);
    }
    warn_of_debug_build();
    open_files::raise();
    let interrupt = Interrupt::default();
    let context = Context {
        interrupt: interrupt.clone(),
        progress: Progress::new(args.shown.is_quiet || args.shown.is_json),
        output,
        is_quiet: args.shown.is_quiet,
    };
    let is_quiet = args.shown.is_quiet;
    let result = interrupt.watch(move || commands::run(args.command, &context));
    match result.and_then(|outcome| show(&output, outcome, is_quiet)) {
        Ok(exit) => exit,
        Err(error) => interrupt.name(output.fail(&error.in_words(words::flag))),
    }
}

fn show(output: &Output, outcome: Outcome, is_quiet: bool) -> Result<Exit, Error> {
    let reader = match &outcome.value {
        Some(value) => output.show(value.as_ref())?,
        None => Reader::There,
    };
    if let Some(remark) = outcome.remark.filter(|_| !is_quiet) {
        output::remark(&remark);
    }
    Ok(outcome.exit.read_by(reader))
}

/// A debug build is ten times slower, and its ledger would be believed.
fn warn_of_debug_build() {
    if cfg!(debug_assertions) {
        tracing::info!("this is a debug build: its rates and times mean nothing");
    }
}
