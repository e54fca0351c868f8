//! Stdout as the kernel sees it: std takes a closed one for one that takes everything.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use onecopy::{Error, ErrorKind, Result};

/// Whoever reads what is written to stdout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reader {
    /// It took what was written, as far as one can know.
    There,
    /// It has gone away, as after `| head`.
    Gone,
}

impl Reader {
    /// Gone where either is.
    pub(crate) fn and(self, other: Self) -> Self {
        if self == Self::There { other } else { self }
    }
}

/// Whether something can be written there at all; asked before anything is done.
pub(crate) fn check() -> Result<()> {
    match fcntl(io::stdout(), FcntlArg::F_GETFL) {
        Ok(flags) if OFlag::from_bits_truncate(flags) & OFlag::O_ACCMODE != OFlag::O_RDONLY => {
            Ok(())
        }
        _ => Err(closed()),
    }
}

/// Writes all of `bytes`; `what` is what they are.
pub(crate) fn write(what: &str, bytes: &[u8]) -> Result<Reader> {
    // Held so that lines of several threads do not mix.
    let stdout = io::stdout().lock();
    let mut left = bytes;
    while !left.is_empty() {
        match nix::unistd::write(&stdout, left) {
            Ok(written) => left = &left[written..],
            Err(Errno::EINTR) => {}
            Err(error) => return unwritten(what, error.into()),
        }
    }
    Ok(Reader::There)
}

/// What a failed write to stdout means.
pub(crate) fn unwritten(what: &str, error: io::Error) -> Result<Reader> {
    if error.kind() == io::ErrorKind::BrokenPipe {
        return Ok(Reader::Gone);
    }
    if error.raw_os_error() == Some(Errno::EBADF as i32) {
        return Err(closed());
    }
    Err(Error::io("write", format!("{what} to stdout"), error))
}

/// Stdout for bytes: a file without a buffer, so that a slice goes from its slab to the kernel and nowhere else.
pub(crate) fn for_bytes() -> Result<File> {
    check()?;
    let fd = io::stdout().as_fd().try_clone_to_owned();
    fd.map(File::from)
        .map_err(|error| Error::io("open", "stdout", error))
}

fn closed() -> Error {
    Error::new(
        ErrorKind::InvalidInput,
        "write to",
        "stdout",
        "it is closed, or open for reading only",
    )
    .with_help("let it lead to a file, a pipe or /dev/null")
}
