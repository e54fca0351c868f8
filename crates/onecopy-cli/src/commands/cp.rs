//! `onecopy cp`: objects and files, one or many, from one place to another.

use onecopy::store::shown_url;
use onecopy::transfer::{CopyOrder, CopySettings, Replace, copy, copy_all};
use onecopy::{Error, ErrorKind, Result};

use super::{Context, Outcome, cat, transfer};
use crate::args::{CatArgs, CpArgs, CpFlags, WaitingArgs};
use crate::exit::Exit;

pub(super) fn run(args: &CpArgs, context: &Context) -> Result<Outcome> {
    if args.is_to_stdout() {
        return to_stdout(args, context);
    }
    let settings = transfer::settings(&args.flags.transfer)?;
    let how = how(&args.flags);
    transfer::run("cp", context, |observer, stop| {
        copy(&args.sources, &args.target, &settings, &how, observer, stop)
    })
}

/// Several copies with the same flags. One that cannot be is an item that failed.
pub(super) fn run_all(orders: &[CpArgs], flags: &CpFlags, context: &Context) -> Result<Outcome> {
    let settings = transfer::settings(&flags.transfer)?;
    let how = how(flags);
    let orders: Vec<CopyOrder> = orders
        .iter()
        .map(|args| CopyOrder {
            sources: args.sources.clone(),
            target: args.target.clone(),
        })
        .collect();
    transfer::run("cp", context, |observer, stop| {
        copy_all(&orders, &settings, &how, observer, stop)
    })
}

fn how(flags: &CpFlags) -> CopySettings {
    CopySettings {
        is_recursive: flags.is_recursive,
        is_flat: flags.is_flat,
        is_raw: flags.is_raw,
        replace: match (
            flags.is_no_clobber,
            flags.is_if_size_differ,
            flags.is_if_source_newer,
        ) {
            (true, ..) => Replace::Never,
            (_, true, true) => Replace::IfEither,
            (_, true, false) => Replace::IfSizeDiffers,
            (_, false, true) => Replace::IfSourceNewer,
            (_, false, false) => Replace::Always,
        },
    }
}

/// `cp .. -` is `cat`, of one source.
fn to_stdout(args: &CpArgs, context: &Context) -> Result<Outcome> {
    if args.sources.len() > 1 || args.flags.is_recursive {
        let why = "only one source can go to standard output";
        let (kind, what) = (ErrorKind::InvalidInput, "several sources to -");
        return Err(Error::new(kind, "copy", what, why)
            .with_help("write several one after the other with onecopy cat"));
    }
    if args.flags.transfer.is_dry_run {
        // Standard output stays as it is: what would be done is told beside it.
        let source = args.sources.first().map(|url| shown_url(url));
        let line = format!("(dry run) cp {} -", source.unwrap_or_default());
        context.output.note(&line);
        return Ok(Outcome {
            value: None,
            remark: None,
            exit: Exit::Done,
        });
    }
    let args = CatArgs {
        urls: args.sources.clone(),
        reading: args.flags.transfer.reading.clone(),
        // A copy takes as long as it takes, wherever it goes.
        waiting: WaitingArgs::FOR_EVER,
        store: args.flags.transfer.store.clone(),
    };
    cat::run(&args, context)
}
