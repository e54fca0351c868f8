//! A file with a list of URLs, one a line.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::FileTypeExt;

use super::stdin;
use crate::error::{Error, ErrorKind, Result};
use crate::ledger::{Await, Ledger};

/// A longer list is refused: 64 MiB are a million URLs.
const MAX_LIST_BYTES: u64 = 64 << 20;

/// A longer line is refused: a key has 1,024 bytes at most, a signed URL a few thousand. What is longer is no list.
pub(super) const MAX_URL_BYTES: usize = 64 << 10;

/// The path of a file with a list, where `url` names one. `-` is stdin.
pub(crate) fn list_file(url: &str) -> Option<&str> {
    if let Some(path) = url.strip_prefix('@') {
        return Some(path);
    }
    let is_list = url.ends_with(".txt") || url.ends_with(".list");
    let path = url.strip_prefix("file://").unwrap_or(url);
    (is_list && !path.contains("://")).then_some(path)
}

/// The URLs in the list at `path`, in their order, without the blanks around them.
///
/// # Errors
///
/// `LimitReached` for more than 64 MiB, a line of more than 64 KiB, more than `max_urls` of them; `InvalidInput` for what
/// is neither a file nor a pipe, or no text; `NotFound` where it names nothing; and what opening and reading can meet.
pub(super) fn read_list(path: &str, max_urls: u64, ledger: &Ledger) -> Result<Vec<String>> {
    let reading = format!("the list {path}");
    let under_way = ledger.awaits(Await::Disk, &reading);
    let refused = |kind, why: String| {
        Error::new(kind, "read the list", path, why).with_help("one URL a line; # begins a remark")
    };
    let mut urls: Vec<String> = Vec::new();
    let mut lines = BufReader::new(open(path)?.take(MAX_LIST_BYTES + 1));
    let (mut line, mut number, mut len_bytes) = (Vec::new(), 0_u64, 0);
    loop {
        line.clear();
        number += 1;
        under_way.begin(&reading);
        let mut limited = lines.by_ref().take(MAX_URL_BYTES as u64 + 1);
        let read = limited.read_until(b'\n', &mut line);
        len_bytes += read.map_err(|error| Error::io("read the list", path, error))? as u64;
        if line.is_empty() {
            break;
        }
        if line.len() > MAX_URL_BYTES {
            let why = format!("line {number} has more than {MAX_URL_BYTES} bytes");
            return Err(refused(ErrorKind::LimitReached, why));
        }
        if len_bytes > MAX_LIST_BYTES {
            let why = format!("it has more than {MAX_LIST_BYTES} bytes");
            return Err(refused(ErrorKind::LimitReached, why));
        }
        let Ok(text) = std::str::from_utf8(&line) else {
            let why = format!("line {number} is no UTF-8 text");
            return Err(refused(ErrorKind::InvalidInput, why));
        };
        // Editors on Windows begin a file with this mark.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        // Nobody sees a blank at the end of a line; a key that ends in one is named by a glob.
        let text = text.trim_matches([' ', '\t', '\r', '\n']);
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        if urls.len() as u64 >= max_urls {
            let why = format!(
                "with it, more than {} names are given",
                super::resolve::MAX_NAMES
            );
            return Err(refused(ErrorKind::LimitReached, why));
        }
        urls.push(text.to_owned());
    }
    if urls.is_empty() {
        return Err(refused(ErrorKind::NotFound, "it names nothing".to_owned()));
    }
    Ok(urls)
}

fn open(path: &str) -> Result<Box<dyn Read>> {
    if matches!(path, "-" | "/dev/stdin") {
        return Ok(Box::new(stdin()?));
    }
    let failed = |error| {
        Error::io("read the list", path, error).with_help("one URL a line; # begins a remark")
    };
    // Looked at before it is opened: opening a device may do something, and reading one may never end.
    let kind = fs::metadata(path).map_err(failed)?.file_type();
    if !kind.is_file() && !kind.is_fifo() {
        let what = if kind.is_dir() {
            "it is a folder"
        } else {
            "it is neither a file nor a pipe"
        };
        return Err(
            Error::new(ErrorKind::InvalidInput, "read the list", path, what)
                .with_help("a list is a file with one URL a line; @- reads it from stdin"),
        );
    }
    Ok(Box::new(File::open(path).map_err(failed)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Result<Vec<String>> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("urls");
        fs::write(&path, bytes).unwrap();
        read_list(path.to_str().unwrap(), 5, &Ledger::unread())
    }

    #[test]
    fn lists_are_files_of_this_machine() {
        assert_eq!(list_file("@urls"), Some("urls"));
        assert_eq!(list_file("@-"), Some("-"));
        assert_eq!(list_file("file:///a/urls.txt"), Some("/a/urls.txt"));
        assert_eq!(list_file("s3://b/urls.txt"), None);
        assert_eq!(list_file("a.tar"), None);
    }

    #[test]
    fn one_url_a_line() {
        let text = "\u{feff}s3://b/1\r\n\n# s3://b/0\n \t \n s3://b/ 2 \t\r\ns3://b/#3\n  # x\ns3://b/4[ ]\u{a0}";
        assert_eq!(
            read(text.as_bytes()).unwrap(),
            ["s3://b/1", "s3://b/ 2", "s3://b/#3", "s3://b/4[ ]\u{a0}"]
        );
        let longest = "x".repeat(MAX_URL_BYTES - 1) + "\n";
        assert_eq!(
            read(longest.as_bytes()).unwrap()[0].len(),
            MAX_URL_BYTES - 1
        );
    }

    #[test]
    fn what_is_no_list_is_refused_with_the_line() {
        use ErrorKind::{InvalidInput, LimitReached, NotFound};
        let long = [&b"a\n"[..], &[b'x'; MAX_URL_BYTES + 1]].concat();
        for (bytes, kind, why) in [
            (&b""[..], NotFound, "names nothing"),
            (b"#\n\n", NotFound, "names nothing"),
            (b"a\nb\n\xff\n", InvalidInput, "line 3 is no UTF-8"),
            (&long, LimitReached, "line 2 has more than 65536 bytes"),
            (
                b"1\n2\n3\n4\n5\n6\n",
                LimitReached,
                "more than 1000000 names",
            ),
        ] {
            let error = read(bytes).unwrap_err();
            assert_eq!(error.kind(), kind, "{error}");
            assert!(error.to_string().contains(why), "{error}");
            assert!(error.help().is_some());
        }
    }

    #[test]
    fn a_list_without_an_end_is_refused_while_it_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("big");
        // A remark a line, so that no URL is kept.
        let line = format!("#{}\n", "x".repeat(1022));
        fs::write(&path, line.repeat((64 << 10) + 1)).unwrap();
        let error = read_list(path.to_str().unwrap(), 5, &Ledger::unread()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LimitReached);
        assert!(
            error.to_string().contains("more than 67108864 bytes"),
            "{error}"
        );
    }

    #[test]
    fn devices_and_folders_are_no_lists_and_pipes_are() {
        for path in ["/dev/zero", "/dev/null", "/"] {
            let error = read_list(path, 5, &Ledger::unread()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
            assert!(error.help().unwrap().contains("@-"), "{error}");
        }
        let missing = read_list("/no/such/list", 5, &Ledger::unread()).unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::NotFound);
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let writing = pipe.clone();
        let writer = crate::sync::spawn("test-writer", move || {
            fs::write(writing, "s3://b/1\ns3://b/2\n").unwrap();
        });
        assert_eq!(
            read_list(pipe.to_str().unwrap(), 5, &Ledger::unread()).unwrap(),
            ["s3://b/1", "s3://b/2"]
        );
        writer.unwrap().join().unwrap();
    }
}
