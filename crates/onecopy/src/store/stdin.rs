//! Standard input, where there is one: std takes a closed one for one that has come to its end.

use std::io::{self, Stdin};

use nix::fcntl::{FcntlArg, OFlag, fcntl};

use crate::error::{Error, ErrorKind, Result};

/// Standard input.
///
/// # Errors
///
/// `InvalidInput` where it is closed, or open for writing only: reading it would give nothing, and no error.
pub fn stdin() -> Result<Stdin> {
    let stdin = io::stdin();
    match fcntl(&stdin, FcntlArg::F_GETFL) {
        Ok(flags) if OFlag::from_bits_truncate(flags) & OFlag::O_ACCMODE != OFlag::O_WRONLY => {
            Ok(stdin)
        }
        _ => Err(Error::new(
            ErrorKind::InvalidInput,
            "read",
            "standard input",
            "it is closed, or open for writing only",
        )
        .with_help("connect it to a file, a pipe or /dev/null")),
    }
}
