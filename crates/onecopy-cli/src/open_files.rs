//! How many files and sockets the process may open.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Raises the soft limit to the hard one. The soft one is low for the sake of programs that call `select`, which cannot
/// take more than 1024; this one does not, and holds hundreds of files and sockets at a time. Where it cannot be raised,
/// transfers open fewer at a time.
pub(crate) fn raise() {
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE)
        && soft < hard
    {
        let _stays_as_it_is = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
}
