//! `onecopy run`: cp and sync commands, one a line.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};

use clap::Parser;
use onecopy::store::stdin;
use onecopy::{Error, ErrorKind, Result};

use super::{Context, Outcome, cp, sync, transfer};
use crate::args::{Args, Command, CpArgs, RunArgs, SyncArgs};
use crate::exit::Exit;
use crate::stdout::Reader;

/// A longer line is refused: many names may stand in one, but what never ends a line holds no commands.
const MAX_LINE_BYTES: u64 = 1 << 20;

/// Commands are kept until all are read, in several times the memory of their text.
const MAX_LINES: u64 = 1_000_000;
const MAX_BYTES: u64 = 256 << 20;

/// What is carried out at a time.
enum Batch {
    /// Copies with the same flags, side by side.
    Copies(Vec<CpArgs>),
    Sync(Box<SyncArgs>),
}

pub(super) fn run(args: &RunArgs, context: &Context) -> Result<Outcome> {
    // All of them are read before any is carried out: a misspelt line is found while nothing is done.
    let batches = read(&args.file)?;
    let (mut exit, mut reader) = (Exit::Done, Reader::There);
    let mut last = Outcome {
        value: None,
        remark: None,
        exit,
    };
    for batch in batches {
        context.interrupt.check()?;
        if let Some(summary) = last.value.take().filter(|_| context.output.is_json()) {
            reader = reader.and(context.output.show(summary.as_ref())?);
        }
        let ended = match &batch {
            Batch::Copies(copies) => match copies.as_slice() {
                [] => continue,
                [first, ..] => cp::run_all(copies, &first.flags, context),
            },
            Batch::Sync(args) => sync::run(args, context),
        };
        last = match ended {
            Err(error) if !is_end(&error) => failed(&batch, &error, context)?,
            ended => ended?,
        };
        exit = exit.and(last.exit);
    }
    let exit = exit.read_by(reader);
    Ok(Outcome { exit, ..last })
}

fn is_end(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Bug | ErrorKind::Cancelled)
}

/// Commands that cannot be, or had to stop, are items that failed; the rest goes on.
fn failed(batch: &Batch, error: &Error, context: &Context) -> Result<Outcome> {
    match batch {
        Batch::Copies(copies) => {
            for args in copies {
                transfer::refuse("cp", context, &args.sources, &args.target, error)?;
            }
        }
        Batch::Sync(args) => {
            let source = std::slice::from_ref(&args.source);
            transfer::refuse("sync", context, source, &args.target, error)?;
        }
    }
    Ok(Outcome {
        value: None,
        remark: None,
        exit: Exit::No,
    })
}

fn read(file: &str) -> Result<Vec<Batch>> {
    let failed = |error| {
        Error::io("read the commands in", file, error)
            .with_help("name a text file, or leave it out to read standard input")
    };
    let mut lines: Box<dyn BufRead> = if file == "-" {
        Box::new(stdin()?.lock())
    } else {
        Box::new(BufReader::new(File::open(file).map_err(failed)?))
    };
    let (mut batches, mut line, mut bytes) = (Vec::new(), Vec::new(), 0);
    for number in 1_u64.. {
        line.clear();
        let mut limited = lines.by_ref().take(MAX_LINE_BYTES + 1);
        if limited.read_until(b'\n', &mut line).map_err(failed)? == 0 {
            break;
        }
        let refused = |kind, why: String| {
            let place = format!("line {number} of {file}");
            Error::new(kind, "read", place, why)
                .with_help("a line is cp or sync with its arguments; nothing was carried out")
        };
        if line.len() as u64 > MAX_LINE_BYTES {
            let why = format!("it has more than {MAX_LINE_BYTES} bytes");
            return Err(refused(ErrorKind::LimitReached, why));
        }
        bytes += line.len() as u64;
        if bytes > MAX_BYTES {
            let why = format!("the lines until here have more than {MAX_BYTES} bytes");
            return Err(refused(ErrorKind::LimitReached, why));
        }
        let text = std::str::from_utf8(&line);
        let text = text
            .map_err(|_error| refused(ErrorKind::InvalidInput, "it is no UTF-8 text".to_owned()))?;
        let text = text.trim_start_matches('\u{feff}').trim();
        // A remark is a line of its own: # may stand in any key.
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        if number > MAX_LINES {
            let why = format!("there are more than {MAX_LINES} lines");
            return Err(refused(ErrorKind::LimitReached, why));
        }
        let command = parse(text).map_err(|why| refused(ErrorKind::InvalidInput, why))?;
        add(&mut batches, command);
    }
    Ok(batches)
}

fn add(batches: &mut Vec<Batch>, command: Batch) {
    match (batches.last_mut(), command) {
        (Some(Batch::Copies(copies)), Batch::Copies(more))
            if copies.first().map(|args| &args.flags) == more.first().map(|args| &args.flags) =>
        {
            copies.extend(more);
        }
        (_, command) => batches.push(command),
    }
}

fn parse(line: &str) -> Result<Batch, String> {
    let words = shlex::split(line).ok_or("a quote is not closed")?;
    let words = words.iter().map(String::as_str);
    let args =
        Args::try_parse_from(std::iter::once("onecopy").chain(words)).map_err(|refusal| {
            let text = refusal.to_string();
            // The first paragraph says what is wrong; usage and tips follow.
            let first = text.split("\n\n").next().unwrap_or_default();
            let words: Vec<&str> = first
                .trim_start_matches("error: ")
                .split_whitespace()
                .collect();
            words.join(" ")
        })?;
    match args.command {
        Command::Cp(args) if args.is_to_stdout() || args.sources.iter().any(|name| name == "-") => {
            Err("standard input and output are not for batches".to_owned())
        }
        Command::Cp(args) => {
            transfer::settings(&args.flags.transfer).map_err(|error| error.to_string())?;
            Ok(Batch::Copies(vec![args]))
        }
        Command::Sync(args) => {
            transfer::settings(&args.transfer).map_err(|error| error.to_string())?;
            Ok(Batch::Sync(Box::new(args)))
        }
        _ => Err("only cp and sync can stand here".to_owned()),
    }
}
