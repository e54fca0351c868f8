//! Archives of arrays (`npz`) whose directories tell tales.

use onecopy::ErrorKind;
use onecopy::buffer::Slice;
use onecopy::ledger::{Ledger, OpenHop};
use onecopy::route::Hop;
use onecopy::sample::decode::npz_members;

fn hop() -> OpenHop {
    Ledger::unread().hop(Hop::Decode)
}

/// A file of an archive: its name, its content, and where its directory says that it is, if that is not where it is.
type ZipFile<'a> = (&'a str, &'a [u8], Option<u32>);

/// An archive of stored files.
fn zip(files: &[ZipFile<'_>]) -> Vec<u8> {
    let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes();
    let short = |number: usize| u16::try_from(number).unwrap_or(u16::MAX).to_le_bytes();
    let (mut bytes, mut directory) = (Vec::new(), Vec::new());
    for (name, content, told) in files {
        let at = told.map_or(bytes.len(), |at| at as usize);
        let facts = [
            &[20, 0, 0, 0, 0, 0, 0, 0, 0, 0][..],
            &crc32fast::hash(content).to_le_bytes(),
            &number(content.len()),
            &number(content.len()),
            &short(name.len()),
            &[0, 0],
        ]
        .concat();
        directory.extend(
            [
                b"PK\x01\x02\x14\x00",
                &*facts,
                &[0; 10],
                &number(at),
                name.as_bytes(),
            ]
            .concat(),
        );
        if told.is_none() {
            bytes.extend([b"PK\x03\x04", &*facts, name.as_bytes(), content].concat());
        }
    }
    let count = short(files.len());
    let end = [
        b"PK\x05\x06\0\0\0\0",
        &count[..],
        &count,
        &number(directory.len()),
        &number(bytes.len()),
        &[0, 0],
    ]
    .concat();
    [bytes, directory, end].concat()
}

#[test]
fn arrays_of_an_npz_each_have_bytes_and_a_name_of_their_own() {
    let array = *b"an array, which is read later";
    // The second file's own header lies within the content of the first.
    let inner = zip(&[("b.npy", &array, None)]);
    let nested_at = 30 + u32::try_from("a.npy".len()).unwrap();
    let good = zip(&[
        ("b.npy", &array, None),
        ("a.npy", &[], None),
        ("c", &array, None),
    ]);
    let members = npz_members(&hop(), &Slice::from_vec(good)).unwrap();
    let names: Vec<&str> = members.iter().map(|(name, _)| &**name).collect();
    assert_eq!(names, ["b", "a", "c"]);

    let many: Vec<String> = (0..65_534)
        .map(|number| format!("{number:05}.npy"))
        .collect();
    let mut bomb: Vec<ZipFile> = vec![("a.npy", &array, None)];
    bomb.extend(many.iter().map(|name| (&**name, &array[..], Some(0))));
    let cases = [
        (zip(&bomb), "lie in the same bytes"),
        (
            zip(&[("a.npy", &inner, None), ("b.npy", &array, Some(nested_at))]),
            "\"a.npy\" and \"b.npy\" lie in the same bytes",
        ),
        (
            zip(&[("a.npy", &array, None), ("a.npy", &array, None)]),
            "two of its arrays are called \"a\"",
        ),
        (
            zip(&[("a.npy", &array, None), ("a", &array, None)]),
            "two of its arrays are called \"a\"",
        ),
    ];
    for (bytes, text) in cases {
        let error = npz_members(&hop(), &Slice::from_vec(bytes)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(error.to_string().contains(text), "{text:?} in {error}");
    }
    // As many that lie apart are fine.
    let mut apart: Vec<ZipFile> = Vec::new();
    apart.extend(many.iter().map(|name| (&**name, &array[..], None)));
    let members = npz_members(&hop(), &Slice::from_vec(zip(&apart))).unwrap();
    assert_eq!(members.len(), 65_534);
}

#[test]
fn no_array_of_an_npz_lies_in_its_directory() {
    let array = *b"an array, which is read later";
    let mut bytes = zip(&[("a.npy", &array, None)]);
    // The length of the content, in both headers: up to the archive's last byte, directory and all.
    let directory_at = 30 + "a.npy".len() + array.len();
    let longer = u32::try_from(bytes.len() - 30 - "a.npy".len())
        .unwrap()
        .to_le_bytes();
    for at in [18, 22, directory_at + 20, directory_at + 24] {
        bytes.splice(at..at + 4, longer);
    }
    let error = npz_members(&hop(), &Slice::from_vec(bytes)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Truncated);
    assert!(
        error.to_string().contains("not where its directory says"),
        "{error}"
    );
}
