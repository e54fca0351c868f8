//! `onecopy cat`: objects' bytes to stdout, in order, from the slabs that the network filled.

use std::fmt;
use std::io::Write;

use onecopy::ledger::Report;
use onecopy::pipeline::Piece;
use onecopy::sync::Arc;
use onecopy::{Error, Result};
use serde::Serialize;

use super::{Context, Outcome, load_config};
use crate::args::CatArgs;
use crate::exit::Exit;
use crate::output::{quiet_if_gone, stdout_for_bytes};

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
    let config = load_config(&args.store, &args.reading);
    let mut stdout = stdout_for_bytes()?;
    let mut load = onecopy::open(&args.urls, config).run_buffers()?;
    let ledger = Arc::clone(load.ledger());
    let feed = load.output().feed();
    while let Some(piece) = feed.next()? {
        context.interrupt.check()?;
        match piece {
            Piece::Bytes(bytes) => {
                ledger.mark_first();
                if let Err(error) = stdout.write_all(&bytes) {
                    quiet_if_gone(error)
                        .map_err(|error| Error::io("write", "bytes to stdout", error))?;
                    break;
                }
            }
            Piece::Failed(error) => return Err(error),
            Piece::Shard(_) | Piece::End => {}
        }
    }
    ledger.finish();
    Ok(Outcome::new(Written(ledger.report()), Exit::Done))
}
