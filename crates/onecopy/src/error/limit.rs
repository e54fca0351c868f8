//! Limits of the machine: what the system's error numbers mean where it has no more to give, and what to do then.

use std::io;

use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};

use super::ErrorKind;

/// A limit that was reached.
pub(crate) struct Limit {
    pub(crate) kind: ErrorKind,
    pub(crate) why: String,
    pub(crate) help: &'static str,
}

/// What to do where no file or socket can be opened.
const MORE_FILES: &str =
    "raise the limit (ulimit -n, LimitNOFILE= of a systemd unit), or lower `connections`";

impl Limit {
    /// The limit that `error` tells of, where it does.
    pub(crate) fn of(error: &io::Error) -> Option<Self> {
        let limit = |why: String, help| Self {
            kind: ErrorKind::LimitReached,
            why,
            help,
        };
        Some(match error.raw_os_error()? {
            libc::EMFILE => limit(no_files(), MORE_FILES),
            libc::ENFILE => limit(
                "the machine opens no more files".to_owned(),
                "raise fs.file-max (sysctl), or close what holds files open",
            ),
            libc::EFBIG => limit(
                too_large(),
                "raise the limit (ulimit -f), or use a file system that holds larger files",
            ),
            // No limit that somebody set, but as much in need of a cure.
            libc::ENOSPC => Self {
                kind: ErrorKind::Io,
                why: error.to_string(),
                help: "make room on the disk, or choose another place",
            },
            libc::EDQUOT => limit(
                "the quota of the disk is used up".to_owned(),
                "make room, or have the quota raised",
            ),
            _ => return None,
        })
    }
}

fn no_files() -> String {
    match getrlimit(Resource::RLIMIT_NOFILE) {
        Ok((soft, _)) => {
            format!("this process may have {soft} files and sockets open, and has no more left")
        }
        Err(_) => "this process may open no more files and sockets".to_owned(),
    }
}

fn too_large() -> String {
    match getrlimit(Resource::RLIMIT_FSIZE) {
        Ok((soft, _)) if soft != RLIM_INFINITY => {
            format!("the file is too large: this process may write files of {soft} bytes")
        }
        _ => "the file is too large for its file system".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Error;
    use super::*;

    #[test]
    fn a_limit_of_the_machine_is_told_with_its_cure_whatever_help_its_caller_had() {
        for (number, kind, why, help) in [
            (
                libc::EMFILE,
                ErrorKind::LimitReached,
                "files and sockets open",
                "ulimit -n",
            ),
            (
                libc::ENFILE,
                ErrorKind::LimitReached,
                "no more files",
                "fs.file-max",
            ),
            (
                libc::EFBIG,
                ErrorKind::LimitReached,
                "too large",
                "ulimit -f",
            ),
            (libc::EDQUOT, ErrorKind::LimitReached, "quota", "make room"),
        ] {
            let error = Error::io("open", "x", io::Error::from_raw_os_error(number))
                .with_help("check the path");
            assert_eq!(error.kind(), kind, "{error}");
            assert!(error.why().contains(why), "{error}");
            assert!(error.help().unwrap().contains(help), "{error:?}");
        }
        let full = Error::io("open", "x", io::Error::from_raw_os_error(libc::ENOSPC));
        assert_eq!(
            (full.kind(), full.help()),
            (
                ErrorKind::Io,
                Some("make room on the disk, or choose another place")
            )
        );
        let other = Error::io("open", "x", io::Error::from_raw_os_error(libc::ENOENT))
            .with_help("check the path");
        assert_eq!(other.help(), Some("check the path"));
    }
}
