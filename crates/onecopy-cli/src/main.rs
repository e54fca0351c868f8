//! The `onecopy` command: everything is in the library, which the Python package calls too.
//!
//! But for one thing: a closed stdin or stdout. Rust opens `/dev/null` in its place before `main` begins, and what is
//! written then is lost in silence. So it is looked at before that, and a file put there that refuses.
#![expect(
    unsafe_code,
    reason = "an attribute, and no unsafe code: it names the section of what runs before Rust's own start"
)]

use std::fs::OpenOptions;
use std::io;
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::fcntl::{FcntlArg, fcntl};
use nix::unistd::{dup2_stdin, dup2_stdout};

static IS_STDIN_CLOSED: AtomicBool = AtomicBool::new(false);
static IS_STDOUT_CLOSED: AtomicBool = AtomicBool::new(false);

/// Called by the C library before `main`, as every function in this section is.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    let is_closed = |fd: &dyn AsFd| fcntl(fd.as_fd(), FcntlArg::F_GETFD).is_err();
    IS_STDIN_CLOSED.store(is_closed(&io::stdin()), Ordering::Relaxed);
    IS_STDOUT_CLOSED.store(is_closed(&io::stdout()), Ordering::Relaxed);
}

/// Puts `/dev/null`, opened the wrong way round, where nothing was: to read it or to write to it is an error, and no file
/// that is opened later takes the place.
fn refuse_closed() {
    if IS_STDIN_CLOSED.load(Ordering::Relaxed)
        && let Ok(file) = OpenOptions::new().write(true).open("/dev/null")
    {
        let _stays_as_it_is = dup2_stdin(file);
    }
    if IS_STDOUT_CLOSED.load(Ordering::Relaxed)
        && let Ok(file) = OpenOptions::new().read(true).open("/dev/null")
    {
        let _stays_as_it_is = dup2_stdout(file);
    }
}

fn main() -> ExitCode {
    refuse_closed();
    ExitCode::from(onecopy_cli::run(std::env::args_os()))
}
