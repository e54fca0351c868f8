//! Which keys can be files, and which cannot.

/// The longest name of a file on the file systems of Linux, in bytes (`NAME_MAX`).
const MAX_NAME: usize = 255;

/// The longest path below the target, in bytes: `PATH_MAX` without what stands before it, which `openat` never sees.
const MAX_PATH: usize = 4095;

/// The longest key of S3, in bytes.
const MAX_KEY: usize = 1024;

/// Why the relative key `relative` cannot be a file below the target; none where it can. A key is never altered to make
/// it fit: two keys could then become one file.
pub(super) fn no_file(relative: &[u8]) -> Option<String> {
    if relative.is_empty() {
        return Some("nothing is left of the key below the prefix".to_owned());
    }
    if relative.len() > MAX_PATH {
        return Some(format!("its path is longer than {MAX_PATH} bytes"));
    }
    if relative.contains(&0) {
        return Some("it contains a NUL byte".to_owned());
    }
    if relative.ends_with(b"/") {
        return Some("it ends in a slash: a folder cannot hold bytes".to_owned());
    }
    if super::folder::is_draft(split(relative).1) {
        let why =
            "files that are not whole yet have such names, and are swept away where one is left";
        return Some(why.to_owned());
    }
    for name in relative.split(|byte| *byte == b'/') {
        match name {
            b"" => return Some("a part between two slashes is empty".to_owned()),
            b"." | b".." => {
                return Some("a part of it is . or .., and would lead elsewhere".to_owned());
            }
            _ if name.len() > MAX_NAME => {
                return Some(format!("a part of it is longer than {MAX_NAME} bytes"));
            }
            _ => {}
        }
    }
    None
}

/// Why `key` cannot be a key of S3; none where it can.
pub(super) fn no_key(key: &[u8]) -> Option<String> {
    if key.is_empty() {
        return Some("nothing is left of the key below the prefix".to_owned());
    }
    if key.len() > MAX_KEY {
        return Some(format!("its key is longer than {MAX_KEY} bytes"));
    }
    if std::str::from_utf8(key).is_err() {
        return Some("its name is not UTF-8, and keys of S3 are".to_owned());
    }
    None
}

/// Whether an object is the empty one that stands for a folder in tools that make folders.
pub(super) fn is_folder_marker(relative: &[u8], len_bytes: u64) -> bool {
    len_bytes == 0 && (relative.is_empty() || relative.ends_with(b"/"))
}

/// Folder and name of a relative path.
pub(super) fn split(relative: &[u8]) -> (&[u8], &[u8]) {
    match relative.iter().rposition(|byte| *byte == b'/') {
        Some(at) => (&relative[..at], &relative[at + 1..]),
        None => (b"", relative),
    }
}

/// Bytes as they may be shown: a key may hold what moves the cursor of a terminal.
pub(super) fn shown(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for c in String::from_utf8_lossy(bytes).chars() {
        if c.is_control() {
            text.extend(c.escape_default());
        } else {
            text.push(c);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_would_escape_collide_or_not_fit_are_refused() {
        let long = [b"a/".as_slice(), &[b'x'; 256]].concat();
        let deep = b"x/".repeat(2048);
        for key in [
            &b""[..],
            b"/lead",
            b"a//b",
            b"..",
            b"../a",
            b"a/../b",
            b"a/..",
            b"./a",
            b"a/.",
            b"a\0b",
            b"d/",
            b"/",
            b".onecopy-7-1.part",
            b"d/.onecopy-7-1.part",
            &long,
            &deep,
        ] {
            assert!(no_file(key).is_some(), "{:?}", shown(key));
        }
        for key in [
            &b"a"[..],
            b"a/b.c",
            b"...",
            b"..a",
            b"a/.hidden",
            b"\xff\n",
            b" ",
            b"~",
            b"-rf",
            b".onecopy-x.part",
            b".onecopy-7-1.part/x",
            &long[..257],
        ] {
            assert_eq!(no_file(key), None, "{:?}", shown(key));
        }
    }

    #[test]
    fn names_that_are_no_keys_are_refused() {
        assert!(no_key(b"").is_some());
        assert!(no_key(b"\xff").is_some());
        assert!(no_key(&[b'x'; 1025]).is_some());
        assert_eq!(no_key("\u{fc}/ b".as_bytes()), None);
    }

    #[test]
    fn paths_are_split_at_the_last_slash() {
        assert_eq!(split(b"a/b/c"), (&b"a/b"[..], &b"c"[..]));
        assert_eq!(split(b"c"), (&b""[..], &b"c"[..]));
    }
}
