//! Arrays: each kind with what has to come of it (`fixtures/make.py` made the archives).
#![expect(clippy::disallowed_methods, reason = "test input, not payload")]

use onecopy::ErrorKind;
use onecopy::buffer::Slice;
use onecopy::ledger::{Ledger, OpenHop};
use onecopy::route::Hop;
use onecopy::sample::decode::{DType, Decoder, Scratch, TensorLayout, Value, npz_members};

fn hop() -> OpenHop {
    Ledger::unread().hop(Hop::Decode)
}

fn npy(version: u8, dictionary: &str, content: &[u8]) -> Vec<u8> {
    let mut bytes = b"\x93NUMPY".to_vec();
    bytes.extend([version, 0]);
    if version == 1 {
        bytes.extend(u16::try_from(dictionary.len()).unwrap_or(0).to_le_bytes());
    } else {
        bytes.extend(u32::try_from(dictionary.len()).unwrap_or(0).to_le_bytes());
    }
    bytes.extend_from_slice(dictionary.as_bytes());
    bytes.extend_from_slice(content);
    bytes
}

fn header(descr: &str, is_fortran: bool, shape: &str) -> String {
    let order = if is_fortran { "True" } else { "False" };
    format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}   \n")
}

/// What the array is, its bytes, and what was counted.
type Laid = (TensorLayout, Vec<u8>, Vec<(&'static str, u64)>);

fn array(bytes: &[u8]) -> onecopy::Result<Laid> {
    let ledger = Ledger::unread();
    let layout = match Decoder::Npy.probe(bytes)? {
        Value::Tensor(layout) => layout,
        other => unreachable!("an array is a tensor, not {other:?}"),
    };
    let mut out = vec![0xaa; layout.len_bytes()];
    Decoder::Npy.decode_into(
        &ledger.hop(Hop::Decode),
        bytes,
        &mut out,
        &mut Scratch::new(),
    )?;
    let report = ledger.report();
    let hops = report.hops.iter().map(|hop| (hop.hop, hop.bytes)).collect();
    Ok((layout, out, hops))
}

fn le<const N: usize>(numbers: [f32; N]) -> Vec<u8> {
    numbers.iter().flat_map(|n| n.to_le_bytes()).collect()
}

fn be<const N: usize>(numbers: [f32; N]) -> Vec<u8> {
    numbers.iter().flat_map(|n| n.to_be_bytes()).collect()
}

#[test]
fn case_55_arrays_of_every_order_come_out_in_the_machines_own() {
    let rows = [1., 2., 3., 4., 5., 6.];
    let columns = [1., 4., 2., 5., 3., 6.];
    let cases = [
        (
            "c",
            npy(1, &header("<f4", false, "(2, 3)"), &le(rows)),
            &[2, 3][..],
            "gather",
        ),
        (
            "fortran",
            npy(1, &header("<f4", true, "(2, 3)"), &le(columns)),
            &[2, 3],
            "decode",
        ),
        (
            "big-endian",
            npy(1, &header(">f4", false, "(2, 3)"), &be(rows)),
            &[2, 3],
            "decode",
        ),
        (
            "both",
            npy(1, &header(">f4", true, "(2, 3)"), &be(columns)),
            &[2, 3],
            "decode",
        ),
        (
            "version 2",
            npy(2, &header("<f4", false, "(6,)"), &le(rows)),
            &[6],
            "gather",
        ),
        (
            "version 3",
            npy(3, &header("<f4", false, "(6,)"), &le(rows)),
            &[6],
            "gather",
        ),
        (
            "fortran of one axis",
            npy(1, &header("<f4", true, "(6,)"), &le(rows)),
            &[6],
            "gather",
        ),
    ];
    for (name, bytes, shape, hop) in cases {
        let (layout, out, hops) = array(&bytes).unwrap();
        assert_eq!(
            (layout.dtype, &*layout.shape),
            (DType::F32, shape),
            "{name}"
        );
        assert_eq!(out, le(rows), "{name}");
        assert_eq!(hops, [(hop, 24)], "{name}");
    }
}

#[test]
fn case_55_three_axes_in_fortran_order() {
    // a[i, j, k] = 100 i + 10 j + k, of shape (2, 3, 4).
    let number = |i: u16, j: u16, k: u16| 100 * i + 10 * j + k;
    let mut fortran = Vec::new();
    let mut c = Vec::new();
    for k in 0..4 {
        for j in 0..3 {
            for i in 0..2 {
                fortran.extend(number(i, j, k).to_le_bytes());
            }
        }
    }
    for i in 0..2 {
        for j in 0..3 {
            for k in 0..4 {
                c.extend(number(i, j, k).to_le_bytes());
            }
        }
    }
    let (layout, out, _) = array(&npy(1, &header("<u2", true, "(2, 3, 4)"), &fortran)).unwrap();
    assert!(layout.is_fortran);
    assert_eq!(out, c);
}

#[test]
fn case_55_single_numbers_truth_values_and_nothing_at_all() {
    let (layout, out, _) = array(&npy(1, &header("<i8", false, "()"), &[7; 8])).unwrap();
    assert_eq!((layout.shape.len(), out), (0, vec![7; 8]));
    let (layout, out, _) = array(&npy(1, &header("|b1", false, "(2,)"), &[0, 1])).unwrap();
    assert_eq!((layout.dtype, out), (DType::Bool, vec![0, 1]));
    for is_fortran in [false, true] {
        let (_, out, _) = array(&npy(1, &header(">f8", is_fortran, "(3, 0, 2)"), &[])).unwrap();
        assert!(out.is_empty());
    }
    let swapped = array(&npy(
        1,
        &header(">c8", false, "(1,)"),
        &[1, 2, 3, 4, 5, 6, 7, 8],
    ));
    assert_eq!(swapped.unwrap().1, [4, 3, 2, 1, 8, 7, 6, 5]);
}

#[test]
fn case_55_every_plain_type_is_known() {
    for (descr, name, size) in [
        ("|u1", "uint8", 1),
        ("|i1", "int8", 1),
        ("<u2", "uint16", 2),
        ("<i2", "int16", 2),
        ("<u4", "uint32", 4),
        ("<i4", "int32", 4),
        ("<u8", "uint64", 8),
        ("<i8", "int64", 8),
        ("<f2", "float16", 2),
        ("<f4", "float32", 4),
        ("<f8", "float64", 8),
        ("<c8", "complex64", 8),
        ("<c16", "complex128", 16),
    ] {
        let (layout, ..) = array(&npy(1, &header(descr, false, "(2,)"), &[0; 32])).unwrap();
        assert_eq!(
            (layout.dtype.name(), layout.dtype.size_bytes()),
            (name, size)
        );
    }
}

#[test]
fn case_55_what_cannot_be_read_says_why() {
    use ErrorKind::{Corrupt, LimitReached, Truncated, Unsupported};
    let records = "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }";
    let endless = "(9223372036854775807, 9223372036854775807)";
    let cases = [
        (
            npy(1, &header("|O", false, "(2,)"), b"\x80\x04"),
            Unsupported,
            "is a pickle",
        ),
        (
            npy(1, &header("<f4", false, "(3, 2)"), &[0; 23]),
            Truncated,
            "needs 24 bytes, and 23",
        ),
        (npy(1, records, &[0; 8]), Unsupported, "records"),
        (
            npy(1, &header("<U5", false, "(2,)"), &[0; 40]),
            Unsupported,
            "\"<U5\"",
        ),
        (
            npy(1, &header("<M8[ns]", false, "(2,)"), &[0; 16]),
            Unsupported,
            "M8[ns]",
        ),
        (
            npy(1, &header("<f4", false, endless), &[]),
            LimitReached,
            "shape",
        ),
        (
            npy(9, &header("<f4", false, "()"), &[0; 4]),
            Unsupported,
            "version is 9",
        ),
        (npy(1, "{}", &[]), Corrupt, "lacks descr"),
        (npy(1, "__import__('os')", &[]), Corrupt, "no dictionary"),
        (
            npy(1, &header("<f4", false, "()"), &[])[..30].to_vec(),
            Truncated,
            "within its header",
        ),
        (
            b"\x93NUMPY\x02\x00\xff\xff\xff\xff".to_vec(),
            LimitReached,
            "header has",
        ),
        (b"\x93NUM".to_vec(), Corrupt, "does not begin"),
        (b"\x80\x04\x95abc".to_vec(), Unsupported, "is a pickle"),
        (Vec::new(), Truncated, "it is empty"),
    ];
    for (bytes, kind, text) in cases {
        let error = array(&bytes).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains(text), "{text:?} in {error}");
    }
}

#[test]
fn stored_arrays_of_an_npz_are_parts_of_it_and_deflated_ones_are_counted() {
    let stored = include_bytes!("fixtures/stored.npz").to_vec();
    let deflated = include_bytes!("fixtures/deflated.npz").to_vec();
    let mut contents = Vec::new();
    for (bytes, is_stored) in [(stored, true), (deflated, false)] {
        let whole = Slice::from_vec(bytes);
        let ledger = Ledger::unread();
        let members = npz_members(&ledger.hop(Hop::Decode), &whole).unwrap();
        let names: Vec<_> = members.iter().map(|(name, _)| &**name).collect();
        assert_eq!(names, ["images", "labels"]);
        for (_, member) in &members {
            let is_inside = whole.as_ptr_range().contains(&member.as_ptr());
            assert_eq!(is_inside, is_stored);
        }
        assert_eq!(ledger.report().hops.is_empty(), is_stored);
        let (images, ..) = array(&members[0].1).unwrap();
        assert_eq!(
            (images.dtype, &*images.shape),
            (DType::U8, &[24, 40, 3][..])
        );
        let (_, labels, _) = array(&members[1].1).unwrap();
        let expected: Vec<u8> = (0..4_i64).flat_map(i64::to_le_bytes).collect();
        assert_eq!(labels, expected);
        contents.push(members[0].1.to_vec());
    }
    assert_eq!(contents[0], contents[1]);
}

#[test]
fn damage_to_an_npz_is_an_error_wherever_it_is() {
    for original in [
        &include_bytes!("fixtures/stored.npz")[..],
        include_bytes!("fixtures/deflated.npz"),
    ] {
        for len in 0..original.len() {
            let cut = Slice::from_vec(original[..len].to_vec());
            assert!(npz_members(&hop(), &cut).is_err(), "cut at {len}");
        }
        let whole = Slice::from_vec(original.to_vec());
        let good = npz_members(&hop(), &whole).unwrap();
        for at in 0..original.len() {
            let mut bytes = original.to_vec();
            bytes[at] ^= 0x5a;
            // Dates, versions and attributes do not matter; content and names must never differ in silence.
            if let Ok(members) = npz_members(&hop(), &Slice::from_vec(bytes)) {
                for ((_, got), (_, put)) in members.iter().zip(&good) {
                    assert!(got[..] == put[..], "flipped at {at}");
                }
            }
        }
    }
}
