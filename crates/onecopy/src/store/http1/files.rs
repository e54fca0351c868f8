//! How many sockets this process may open.

use nix::sys::resource::{Resource, getrlimit};

/// Left for what else the process opens: shards on disk, libraries, the consumer's own files.
const SPARE: u64 = 64;

/// How many more files this process may open, less some to spare, and the limit that says so. None where there is no
/// limit.
pub(super) fn left() -> Option<(usize, u64)> {
    let (soft, _hard) = getrlimit(Resource::RLIMIT_NOFILE).ok()?;
    // Where the folder cannot be read, the three that every process has.
    let open = std::fs::read_dir("/proc/self/fd").map_or(3, |entries| entries.count() as u64);
    let left = usize::try_from(soft.saturating_sub(open + SPARE)).ok()?;
    Some((left.max(1), soft))
}

/// How many more files this process may open, for those who open other things than sockets.
pub(crate) fn files_left() -> Option<usize> {
    left().map(|(left, _limit)| left)
}

/// No more connections than there are files for, and what to tell where that is fewer than wanted.
pub(super) fn clamp(wanted: usize, left: Option<(usize, u64)>) -> (usize, Option<String>) {
    match left {
        Some((left, soft)) if left < wanted => {
            let note = format!(
                "connections: at most {left} of the {wanted} allowed, because this process may open {soft} files: raise \
                 the limit (ulimit -n), or lower `connections`"
            );
            (left, Some(note))
        }
        _ => (wanted, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_clamped_to_the_files_that_are_left_and_that_is_told() {
        let (most, note) = clamp(512, Some((189, 256)));
        assert_eq!(most, 189);
        let note = note.unwrap();
        assert!(
            note.contains("189 of the 512") && note.contains("256 files"),
            "{note}"
        );
        assert_eq!(clamp(32, Some((189, 256))), (32, None));
        assert_eq!(clamp(512, None), (512, None));
    }

    #[test]
    fn what_is_open_is_not_left() {
        let (soft, _) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
        let (left, told) = left().unwrap();
        assert_eq!(told, soft);
        assert!((left as u64) + SPARE < soft || left == 1);
    }
}
