//! The only writer of stdout: text or JSON, both from one value. Errors, once, on stderr.

use std::ffi::OsString;
use std::fmt::{Debug, Display};
use std::io::{self, IsTerminal, Write};

use onecopy::{Error, ErrorKind, Result};
use serde::Serialize;
use tracing_subscriber::EnvFilter;

use crate::exit::Exit;
use crate::stdout::{self, Reader};

/// What a command found: shown as text, or as JSON.
pub(crate) trait Shown: Display + Debug + Send {
    /// The JSON form: one object with `"schema": 1`.
    fn json(&self) -> serde_json::Result<String>;
}

impl<T: Display + Debug + Send + Serialize> Shown for T {
    fn json(&self) -> serde_json::Result<String> {
        serde_json::to_string(self)
    }
}

/// Where results and errors go, and in which form.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    is_json: bool,
    /// Text shows what is left out otherwise.
    is_verbose: bool,
    /// Stdout carries objects' bytes, so JSON must not get in between them: it goes to stderr.
    is_stdout_taken: bool,
}

impl Output {
    pub(crate) const fn new(is_json: bool, is_verbose: bool, is_stdout_taken: bool) -> Self {
        Self {
            is_json,
            is_verbose,
            is_stdout_taken,
        }
    }

    /// Shows a result.
    pub(crate) fn show(&self, value: &dyn Shown) -> Result<Reader> {
        let text = if self.is_json {
            let json = value.json().map_err(|error| {
                Error::bug("write the result as JSON", error.to_string()).with_source(error)
            })?;
            json + "\n"
        } else {
            self.text(value)
        };
        self.write("the result", &text)
    }

    fn text(&self, value: &dyn Shown) -> String {
        if self.is_verbose {
            format!("{value:#}")
        } else {
            value.to_string()
        }
    }

    /// Prints `error` once: on stderr as people read it, and with `--json` on stdout as programs
    /// do.
    pub(crate) fn fail(&self, error: &Error) -> Exit {
        // There is nowhere to report that stderr is closed.
        let _closed = writeln!(io::stderr(), "onecopy: {error:#}");
        if self.is_json {
            let failure = Failure::new(error.kind(), error.to_string(), error.help());
            let _gone = self.write("the error", &failure.line());
        }
        Exit::from(error)
    }

    pub(crate) const fn is_json(&self) -> bool {
        self.is_json
    }

    /// Shows one line of a result that comes line by line.
    pub(crate) fn line(&self, line: &str) -> Result<Reader> {
        self.write("a line", &format!("{line}\n"))
    }

    /// Shows a part of a result, whole lines of it.
    pub(crate) fn lines(&self, lines: &str) -> Result<Reader> {
        self.write("the result", lines)
    }

    /// Says something beside the result, on stderr.
    pub(crate) fn note(&self, line: &str) {
        // There is nowhere to report that stderr is closed.
        let _closed = writeln!(io::stderr(), "{line}");
    }

    fn write(&self, what: &str, text: &str) -> Result<Reader> {
        if self.is_stdout_taken {
            let told = io::stderr().write_all(text.as_bytes());
            told.map_err(|error| Error::io("write", format!("{what} to stderr"), error))?;
            return Ok(Reader::There);
        }
        stdout::write(what, text.as_bytes())
    }
}

/// Says `text` on stderr.
pub(crate) fn remark(text: &str) {
    // There is nowhere to report that stderr is closed.
    let _closed = writeln!(io::stderr(), "onecopy: {text}");
}

/// Answers arguments that say nothing to run: help and version on stdout, a refusal as an error.
pub(crate) fn refuse(refusal: &clap::Error, typed: &[OsString]) -> Exit {
    if !refusal.use_stderr() {
        return shown(refusal)
            .unwrap_or_else(|error| Output::new(false, false, false).fail(&error));
    }
    let _closed = refusal.print();
    if typed.iter().any(|word| word == "--json") {
        let text = refusal.render().to_string();
        let message = text.lines().next().unwrap_or_default();
        let message = message.trim_start_matches("error: ");
        let help = Some("see onecopy --help");
        let failure = Failure::new(ErrorKind::InvalidInput, message, help);
        let _gone = Output::new(true, false, false).write("the error", &failure.line());
    }
    Exit::Failed
}

/// Shows help or the version.
fn shown(help: &clap::Error) -> Result<Exit> {
    stdout::check()?;
    let reader = match help.print() {
        Ok(()) => Reader::There,
        Err(error) => stdout::unwritten("the help", error)?,
    };
    Ok(Exit::Done.read_by(reader))
}

/// What can be logged, from nothing to everything.
const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// Sends the engine's log to stderr: from `level` on (`debug`, or `onecopy=trace`), else warnings.
pub(crate) fn log_to_stderr(level: Option<&str>) -> Result<()> {
    let typed = level.unwrap_or("warn");
    let refused = || {
        let target = format!("{typed:?}");
        let why = "there is no such level";
        Error::new(ErrorKind::InvalidInput, "log at", target, why).with_help(
            "use --log off, error, warn, info, debug or trace; of a part of it, with others after commas: \
             --log warn,onecopy::store=debug",
        )
    };
    // A word that is no level would be taken for a part of the program, of which everything is wanted.
    if !typed
        .split(',')
        .all(|word| word.contains(['=', '[']) || LEVELS.contains(&word))
    {
        return Err(refused());
    }
    let filter = EnvFilter::builder()
        .parse(typed)
        .map_err(|error| refused().with_source(error))?;
    let is_coloured = io::stderr().is_terminal() && !is_colour_unwanted();
    // A second call in one process keeps the first one's settings.
    let _kept = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(is_coloured)
        .try_init();
    Ok(())
}

/// <https://no-color.org>: set, and not empty.
fn is_colour_unwanted() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}

/// An error as programs read it.
#[derive(Debug, Serialize)]
struct Failure {
    schema: u32,
    error: Told,
}

#[derive(Debug, Serialize)]
struct Told {
    kind: &'static str,
    message: String,
    help: Option<String>,
}

impl Failure {
    fn new(kind: ErrorKind, message: impl Into<String>, help: Option<&str>) -> Self {
        let error = Told {
            kind: kind.name(),
            message: message.into(),
            help: help.map(str::to_owned),
        };
        Self { schema: 1, error }
    }

    fn line(&self) -> String {
        serde_json::to_string(self).unwrap_or_default() + "\n"
    }
}
