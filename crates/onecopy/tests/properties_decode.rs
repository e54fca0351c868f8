//! Decoders meet the bytes of the world: whatever those are, the answer is a value or an error, and never a panic.

use onecopy::buffer::Slice;
use onecopy::ledger::Ledger;
use onecopy::route::Hop;
use onecopy::sample::decode::{Decoder, Fit, Scratch, Value, npz_members};
use proptest::prelude::*;

const PICTURES: [&[u8]; 8] = [
    include_bytes!("fixtures/baseline.jpg"),
    include_bytes!("fixtures/progressive.jpg"),
    include_bytes!("fixtures/cmyk.jpg"),
    include_bytes!("fixtures/restart.jpg"),
    include_bytes!("fixtures/lossy.webp"),
    include_bytes!("fixtures/alpha.webp"),
    include_bytes!("fixtures/palette.png"),
    include_bytes!("fixtures/stored.npz"),
];

fn try_all(bytes: &[u8]) {
    let hop = Ledger::unread().hop(Hop::Decode);
    let decoders = [
        Decoder::Rgb {
            size: None,
            fit: Fit::Crop,
        },
        Decoder::Rgb {
            size: Some((5, 3)),
            fit: Fit::Crop,
        },
        Decoder::Npy,
        Decoder::Npz,
        Decoder::Cls,
        Decoder::Text,
        Decoder::Json,
    ];
    for decoder in decoders {
        let len = match decoder.probe(bytes) {
            Ok(Value::Tensor(layout)) => layout.len_bytes(),
            Ok(Value::Int) => 8,
            Ok(_) => bytes.len(),
            Err(_) => continue,
        };
        // A header may promise what a test machine should not hold.
        if len < 1 << 24 {
            let mut out = vec![0; len];
            let outcome = decoder.decode_into(&hop, bytes, &mut out, &mut Scratch::new());
            if let Err(error) = outcome {
                assert!(!error.why().contains("panicked"), "{error}");
            }
        }
    }
    let _either = npz_members(&hop, &Slice::from_vec(Vec::from(bytes)));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    #[test]
    fn flipped_pictures_never_panic(
        picture in prop::sample::select(&PICTURES[..]),
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut bytes = Vec::from(picture);
        for (at, flip) in flips {
            let at = at.index(bytes.len());
            bytes[at] ^= flip;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        try_all(&bytes);
    }

    // What serde_json takes is what Python takes, but for the words that start with a capital letter.
    #[test]
    fn json_without_python_s_own_words_is_what_another_reader_takes(
        pieces in prop::collection::vec(prop::sample::select(vec![
            "[", "]", "[", "]", "{", "}", ",", ":", "\"a\":", "\"", "\\", "u00e9", "n", "0", "1", "-", ".", "e", "E+",
            "true", "null", " ", "\n", "\u{e9}", "\u{1}",
        ]), 0..10),
    ) {
        let text = pieces.concat();
        let mut out = vec![0; text.len()];
        let hop = Ledger::unread().hop(Hop::Decode);
        let ours = Decoder::Json.decode_into(&hop, text.as_bytes(), &mut out, &mut Scratch::new());
        let theirs = serde_json::from_str::<serde::de::IgnoredAny>(&text);
        prop_assert_eq!(ours.is_ok(), theirs.is_ok(), "{:?}: {:?}, {:?}", text, ours, theirs);
    }

    #[test]
    fn any_bytes_never_panic(
        magic in prop::sample::select(vec![
            &b""[..], b"\xff\xd8\xff\xe0", b"\x89PNG\r\n\x1a\n", b"RIFF\x20\0\0\0WEBPVP8L", b"PK\x03\x04",
            b"\x93NUMPY\x01\0\x10\0{", b"[", b" 12",
        ]),
        bytes in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        try_all(&[magic, &bytes].concat());
    }
}
