//! One object in a cache: its data file, its map, and what of both is known.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::ops::Range;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use super::direct::DataFile;
use super::identity::{Identity, Paths, remove};
use super::log::{crc32c, head, read_head, read_records, record};
use super::pieces::{Part, Piece, Pieces};
use crate::ledger::OpenHop;
use crate::size::to_usize;
use crate::sync::Mutex;

/// No piece is longer: whoever wants a part of one reads all of it, and a record takes 24 bytes.
const PIECE_BYTES: u64 = 1 << 20;

/// An object's files, open.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) identity: Identity,
    data: DataFile,
    map: File,
    /// Guards what was read of the map.
    known: Mutex<Known>,
}

#[derive(Debug)]
struct Known {
    pieces: Pieces,
    /// So many bytes of the map were read.
    read_bytes: u64,
}

impl Known {
    /// Takes in the next bytes of the map, of an object of that length.
    fn take_in(&mut self, bytes: &[u8], len_bytes: u64) {
        let (pieces, used) = read_records(bytes);
        self.read_bytes += used as u64;
        for piece in pieces {
            if piece.range().end <= len_bytes {
                self.pieces.add(piece);
            }
        }
    }
}

impl Entry {
    /// Opens the files of the object, which are made where they are not there, or no whole ones of this version.
    pub(super) fn open(folder: &Path, identity: &Identity) -> io::Result<Self> {
        let paths = Paths::of(folder, identity)?;
        if let Some(below) = paths.map.parent() {
            fs::create_dir_all(below)?;
        }
        // Whoever removes a map that is torn may meet another who has just made a new one: then there is one more to look at.
        for _ in 0..4 {
            let map = open_map(&paths.map, identity)?;
            let begin = fs::read(&paths.map)?;
            if let Some((text, at)) = read_head(&begin)
                && serde_json::from_str::<Identity>(text).is_ok_and(|of| of == *identity)
            {
                let mut known = Known {
                    pieces: Pieces::default(),
                    read_bytes: at as u64,
                };
                known.take_in(&begin[at..], identity.len_bytes);
                return Ok(Self {
                    identity: identity.clone(),
                    data: DataFile::open(&paths.data)?,
                    map,
                    known: Mutex::new(known),
                });
            }
            remove(&paths)?;
        }
        Err(io::Error::other("others make and break its map"))
    }

    /// Takes in what others have written by now.
    pub(super) fn refresh(&self) -> io::Result<()> {
        let mut known = self.known.lock();
        let len = self.map.metadata()?.len();
        let mut bytes = vec![0; to_usize(len.saturating_sub(known.read_bytes))];
        self.map.read_exact_at(&mut bytes, known.read_bytes)?;
        known.take_in(&bytes, self.identity.len_bytes);
        Ok(())
    }

    /// What is held of `wanted`.
    pub(super) fn parts(&self, wanted: Range<u64>) -> Vec<Part> {
        self.known.lock().pieces.parts(wanted)
    }

    /// How many bytes are held.
    #[cfg(test)]
    fn held_bytes(&self) -> u64 {
        self.known.lock().pieces.bytes()
    }

    /// Writes what is missing of these bytes of the object, and then that it is there: by pieces that end where a whole number of
    /// [`PIECE_BYTES`] does.
    pub(super) fn write(&self, hop: &OpenHop, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let of = |range: &Range<u64>| {
            &bytes[to_usize(range.start - offset)..to_usize(range.end - offset)]
        };
        for part in self.parts(offset..offset + bytes.len() as u64) {
            let Part::Missing(range) = part else {
                continue;
            };
            self.data.write(hop, range.start, of(&range))?;
            let mut pieces = Vec::new();
            let mut at = range.start;
            while at < range.end {
                let end = range.end.min((at / PIECE_BYTES + 1) * PIECE_BYTES);
                let piece = of(&(at..end));
                pieces.push(Piece {
                    offset: at,
                    len: u32::try_from(piece.len()).map_err(io::Error::other)?,
                    crc: crc32c(piece),
                });
                at = end;
            }
            let records: Vec<u8> = pieces.iter().copied().flat_map(record).collect();
            let mut map = &self.map;
            map.write_all(&records)?;
            let mut known = self.known.lock();
            pieces.into_iter().for_each(|piece| known.pieces.add(piece));
        }
        Ok(())
    }

    /// Reads a whole piece; says whether it is what was written.
    pub(super) fn read(&self, hop: &OpenHop, piece: Piece, into: &mut [u8]) -> io::Result<bool> {
        match self.data.read(hop, piece.offset, into) {
            Ok(()) => {}
            // It was cut off: by a crash, or by hand.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return Ok(self.forget(piece));
            }
            Err(error) => return Err(error),
        }
        Ok(crc32c(into) == piece.crc || self.forget(piece))
    }

    /// Gives up a piece that is not what it was; whoever fetches it again writes another record.
    fn forget(&self, piece: Piece) -> bool {
        self.known.lock().pieces.remove(piece);
        false
    }
}

/// Opens a map for appending; where there is none, one comes into being whole or not at all.
fn open_map(path: &Path, identity: &Identity) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).append(true);
    match options.open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        opened => return opened,
    }
    let unique = format!("map.{}.{:016x}", std::process::id(), rand::random::<u64>());
    let new = path.with_extension(unique);
    let made = (|| {
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o666)
            .open(&new)?;
        file.write_all(&head(&identity.json()?))?;
        match fs::hard_link(&new, path) {
            // Another process was first: its map is as good.
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => Ok(()),
        }
    })();
    // Whatever came of it, the name is of no more use.
    let _gone = fs::remove_file(&new);
    made?;
    options.open(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::{Slab, Slice};
    use crate::ledger::Ledger;
    use crate::route::Hop;

    type Damage = (&'static str, fn(&Paths));

    fn identity() -> Identity {
        Identity {
            url: "s3://bucket/a.tar".into(),
            version: None,
            etag: "abc".into(),
            len_bytes: 10_000,
        }
    }

    fn content() -> Slice {
        let mut slab = Slab::heap(10_000);
        for (at, byte) in slab.iter_mut().enumerate() {
            *byte = u8::try_from(at * 7 % 256).unwrap();
        }
        slab.freeze()
    }

    fn hop() -> OpenHop {
        Ledger::unread().hop(Hop::Recv)
    }

    /// Everything that is held, and is what was written.
    fn good(entry: &Entry) -> Vec<(u64, u64)> {
        let mut good = Vec::new();
        for part in entry.parts(0..10_000) {
            let Part::Held(range, piece) = part else {
                continue;
            };
            let mut slab = Slab::heap(piece.len as usize);
            if entry.read(&hop(), piece, &mut slab).unwrap() {
                let from = to_usize(piece.offset);
                assert!(slab[..] == content()[from..from + slab.len()]);
                good.push((range.start, range.end));
            }
        }
        good
    }

    fn write(entry: &Entry, from: usize, to: usize) {
        let bytes = content();
        entry.write(&hop(), from as u64, &bytes[from..to]).unwrap();
    }

    #[test]
    fn what_one_has_written_another_finds_and_so_does_who_comes_later() {
        let folder = tempfile::tempdir().unwrap();
        let open = || Entry::open(folder.path(), &identity()).unwrap();
        let (one, other) = (open(), open());
        write(&one, 0, 4096);
        write(&other, 8192, 10_000);
        assert_eq!(good(&one), [(0, 4096)]);
        one.refresh().unwrap();
        other.refresh().unwrap();
        let both = [(0, 4096), (8192, 10_000)];
        assert_eq!((good(&one), good(&other)), (both.into(), both.into()));
        assert_eq!(good(&open()), both);
        assert_eq!(open().held_bytes(), 4096 + 1808);
    }

    #[test]
    fn another_version_another_length_and_another_bucket_are_other_objects() {
        let folder = tempfile::tempdir().unwrap();
        write(&Entry::open(folder.path(), &identity()).unwrap(), 0, 4096);
        let change: [fn(&mut Identity); 4] = [
            |of| of.etag = "abd".into(),
            |of| of.len_bytes = 9_999,
            |of| of.url = "s3://other/a.tar".into(),
            |of| of.version = Some("1".into()),
        ];
        for change in change {
            let mut other = identity();
            change(&mut other);
            let entry = Entry::open(folder.path(), &other).unwrap();
            assert_eq!(entry.held_bytes(), 0, "{other:?}");
        }
    }

    #[test]
    fn a_flipped_bit_a_cut_and_bytes_that_never_came_cost_that_piece_and_nothing_else() {
        let damages: [Damage; 5] = [
            ("a bit of the data", |paths| {
                let file = OpenOptions::new().read(true).write(true).open(&paths.data);
                let file = file.unwrap();
                let mut byte = [0];
                file.read_exact_at(&mut byte, 5000).unwrap();
                file.write_all_at(&[byte[0] ^ 1], 5000).unwrap();
            }),
            ("the end of the data", |paths| {
                let file = OpenOptions::new().write(true).open(&paths.data).unwrap();
                file.set_len(6000).unwrap();
            }),
            ("the data, never written", |paths| {
                let file = OpenOptions::new().write(true).open(&paths.data).unwrap();
                file.write_all_at(&[0; 4096], 4096).unwrap();
            }),
            ("the end of the map", |paths| {
                let file = OpenOptions::new().write(true).open(&paths.map).unwrap();
                file.set_len(file.metadata().unwrap().len() - 7).unwrap();
            }),
            ("a bit of the map", |paths| {
                let file = OpenOptions::new().write(true).open(&paths.map).unwrap();
                let len = file.metadata().unwrap().len();
                file.write_all_at(b"!", len - 20).unwrap();
            }),
        ];
        for (what, damage) in damages {
            let folder = tempfile::tempdir().unwrap();
            let paths = Paths::of(folder.path(), &identity()).unwrap();
            let entry = Entry::open(folder.path(), &identity()).unwrap();
            write(&entry, 0, 4096);
            write(&entry, 4096, 8192);
            drop(entry);
            damage(&paths);
            let entry = Entry::open(folder.path(), &identity()).unwrap();
            assert_eq!(good(&entry), [(0, 4096)], "{what}");
            assert_eq!(entry.held_bytes(), 4096, "{what}");
            write(&entry, 4096, 8192);
            drop(entry);
            let entry = Entry::open(folder.path(), &identity()).unwrap();
            assert_eq!(good(&entry), [(0, 4096), (4096, 8192)], "{what}, mended");
        }
    }

    #[test]
    fn a_map_of_another_version_or_a_torn_one_is_made_anew() {
        for begin in [
            &b""[..],
            b"onecopy cache 2\n\0\0\0\0",
            b"onecopy cache 1\n",
            b"whatever",
        ] {
            let folder = tempfile::tempdir().unwrap();
            let paths = Paths::of(folder.path(), &identity()).unwrap();
            fs::create_dir_all(paths.map.parent().unwrap()).unwrap();
            fs::write(&paths.map, begin).unwrap();
            fs::write(&paths.data, b"old").unwrap();
            let entry = Entry::open(folder.path(), &identity()).unwrap();
            write(&entry, 0, 512);
            assert_eq!(good(&entry), [(0, 512)]);
            assert_eq!(
                fs::read_dir(paths.map.parent().unwrap()).unwrap().count(),
                2
            );
        }
    }

    #[test]
    fn pieces_beyond_the_object_are_nobodys() {
        let folder = tempfile::tempdir().unwrap();
        let paths = Paths::of(folder.path(), &identity()).unwrap();
        drop(Entry::open(folder.path(), &identity()).unwrap());
        let mut map = OpenOptions::new().append(true).open(&paths.map).unwrap();
        let beyond = Piece {
            offset: 9_000,
            len: 1_001,
            crc: 0,
        };
        map.write_all(&record(beyond)).unwrap();
        let entry = Entry::open(folder.path(), &identity()).unwrap();
        assert_eq!(entry.held_bytes(), 0);
    }
}
