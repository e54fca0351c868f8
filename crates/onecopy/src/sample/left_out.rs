//! What becomes of an error that costs a sample or a shard: it ends the load, or it is counted and passed over. The one place
//! where that is done; what the policy is, and which errors no policy passes over, stands in `config`.

use crate::config::{Answer, OnError};
use crate::error::{Error, Result};
use crate::ledger::{Await, Ledger, Lost};

/// Counts a sample that is left out under the name of its error's kind, and says so where that is wished.
///
/// # Errors
///
/// The error itself, where the policy does not pass over it, or where as much as may be was left out before; what a handler
/// failed with.
pub fn note_skip(ledger: &Ledger, on_error: &OnError, error: Error) -> Result<()> {
    let cause = error.kind().name();
    leave_out(ledger, on_error, Lost::Sample, cause, error)
}

/// Counts a shard that nobody reads samples from and whose bytes did not all come. To be called once a shard.
///
/// # Errors
///
/// As [`note_skip`].
pub fn note_lost_shard(ledger: &Ledger, on_error: &OnError, error: Error) -> Result<()> {
    let cause = error.kind().name();
    leave_out(ledger, on_error, Lost::Shard, cause, error)
}

/// Counts what `error` costs under the name `cause`, and says so where that is wished.
///
/// # Errors
///
/// As [`note_skip`].
pub(super) fn leave_out(
    ledger: &Ledger,
    on_error: &OnError,
    lost: Lost,
    cause: &str,
    error: Error,
) -> Result<()> {
    let answer = ask(ledger, on_error, &error)?;
    if answer == Answer::Raise {
        return Err(error);
    }
    if let Err(before) = ledger.leave_out(lost, cause) {
        if before.is_empty() {
            // Nothing may be left out: the same as where every error ends the load.
            return Err(error);
        }
        return Err(error.and(before.told()).with_help(before.help()));
    }
    if answer == Answer::Warn {
        match lost {
            Lost::Sample => tracing::warn!("sample left out ({cause}): {error}"),
            Lost::Shard => tracing::warn!("shard given up ({cause}): {error}"),
        }
    }
    Ok(())
}

/// Counts an oddity of a shard that cost no sample, and says so where that is wished.
///
/// # Errors
///
/// The error itself, where the policy does not pass over it; what a handler failed with.
pub(super) fn take_all_the_same(
    ledger: &Ledger,
    on_error: &OnError,
    cause: &str,
    error: Error,
) -> Result<()> {
    let answer = ask(ledger, on_error, &error)?;
    if answer == Answer::Raise {
        return Err(error);
    }
    ledger.warned(cause);
    if answer == Answer::Warn {
        tracing::warn!("shard taken ({cause}): {error}");
    }
    Ok(())
}

/// What the policy says; where that is for a function to say, it may take its time.
fn ask(ledger: &Ledger, on_error: &OnError, error: &Error) -> Result<Answer> {
    let _asked = matches!(on_error, OnError::Ask(_)).then(|| {
        let what = format_args!("the answer of the function of on_error about this: {error}");
        ledger.awaits(Await::Answer, what)
    });
    on_error.answer(error)
}
