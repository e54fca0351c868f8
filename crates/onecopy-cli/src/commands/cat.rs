//! `onecopy cat`: objects' bytes to stdout, in order, from the slabs that the network filled.

use std::fmt;
use std::io::Write;

use onecopy::Result;
use onecopy::ledger::Report;
use onecopy::pipeline::Piece;
use onecopy::sync::Arc;
use serde::Serialize;

use super::{Context, Outcome, load_config};
use crate::args::CatArgs;
use crate::exit::Exit;
use crate::stdout::{self, Reader};

/// Nothing as text, because stdout has the bytes; the ledger as JSON, which goes to stderr.
#[derive(Debug, Serialize)]
#[serde(transparent)]
struct Written(Report);

impl fmt::Display for Written {
    fn fmt(&self, _f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
}

pub(super) fn run(args: &CatArgs, context: &Context) -> Result<Outcome> {
    let mut config = load_config(&args.store, &args.reading);
    config.wait_limit = args.waiting.limit();
    let mut stdout = stdout::for_bytes()?;
    let mut reader = Reader::There;
    let mut load = onecopy::open(&args.urls, config).run_buffers()?;
    let ledger = Arc::clone(load.ledger());
    let feed = load.output().feed();
    while let Some(piece) = feed.next()? {
        context.interrupt.check()?;
        match piece {
            Piece::Bytes(bytes) => {
                ledger.mark_first();
                if let Err(error) = stdout.write_all(&bytes) {
                    reader = stdout::unwritten("bytes", error)?;
                    break;
                }
            }
            Piece::Failed(error) => return Err(error),
            Piece::Shard(_) | Piece::End => {}
        }
    }
    ledger.finish();
    let exit = Exit::Done.read_by(reader);
    Ok(Outcome::new(Written(ledger.report()), exit))
}
