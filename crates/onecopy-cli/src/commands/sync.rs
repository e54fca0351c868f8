//! `onecopy sync`: makes a folder or prefix like another.

use onecopy::Result;
use onecopy::transfer::{Compare, SyncSettings, sync};

use super::{Context, Outcome, transfer};
use crate::args::SyncArgs;

pub(super) fn run(args: &SyncArgs, context: &Context) -> Result<Outcome> {
    let settings = transfer::settings(&args.transfer)?;
    let how = SyncSettings {
        compare: match (args.is_size_only, args.is_exact, args.is_by_checksum) {
            (true, ..) => Compare::Size,
            (_, true, _) => Compare::Exact,
            (_, _, true) => Compare::Checksum,
            _ => Compare::SizeAndTime,
        },
        is_deleting: args.is_deleting,
        max_delete: args.max_delete,
    };
    transfer::run("sync", context, |observer, stop| {
        sync(&args.source, &args.target, &settings, &how, observer, stop)
    })
}
