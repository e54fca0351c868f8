//! Numbers, text, JSON and pickles: each numbered input with what has to come of it.

use onecopy::ErrorKind;
use onecopy::ledger::{Ledger, OpenHop};
use onecopy::route::Hop;
use onecopy::sample::decode::{Decoder, Scratch, Value, parse_int, parse_text};

fn hop() -> OpenHop {
    Ledger::unread().hop(Hop::Decode)
}

#[test]
fn case_53_whole_numbers_with_white_space_and_nothing_else() {
    let cases: [(&[u8], Option<i64>); 12] = [
        (b"3\n", Some(3)),
        (b" 3", Some(3)),
        (b"\t-17\r\n", Some(-17)),
        (b"+5", Some(5)),
        (b"9223372036854775807", Some(i64::MAX)),
        (b"3.0", None),
        (b"", None),
        (b" \n", None),
        (b"cat", None),
        (b"9223372036854775808", None),
        (b"3 4", None),
        (b"\xff", None),
    ];
    for (bytes, expected) in cases {
        assert_eq!(parse_int(bytes).ok(), expected, "{}", bytes.escape_ascii());
        let mut out = [0; 8];
        let outcome = Decoder::Cls.decode_into(&hop(), bytes, &mut out, &mut Scratch::new());
        assert_eq!(outcome.is_ok(), expected.is_some());
        assert_eq!(i64::from_ne_bytes(out), expected.unwrap_or(0));
    }
    let text = format!("{:#}", parse_int(b"cat").unwrap_err());
    assert!(
        text.contains("\"cat\"") && text.contains("help: "),
        "{text}"
    );
}

#[test]
fn case_54_json_and_text_are_checked_to_be_text() {
    let huge = "1".repeat(100_000);
    let cases: [(Decoder, &[u8], Option<&str>); 11] = [
        (Decoder::Json, b"\xef\xbb\xbf{\"a\": 1}", None),
        (Decoder::Json, b"{\"a\": NaN}", None),
        (Decoder::Json, b" NaN", None),
        (Decoder::Json, huge.as_bytes(), None),
        (
            Decoder::Json,
            b"{\"a\": \"\xff\"}",
            Some("not UTF-8 at byte 7"),
        ),
        (Decoder::Json, b" \n", Some("it is empty")),
        (Decoder::Json, b"<html>", Some("begins with '<'")),
        (Decoder::Text, "ü".as_bytes(), None),
        (Decoder::Text, b"", None),
        (Decoder::Text, b"ab\xff", Some("not UTF-8 at byte 2")),
        (Decoder::Raw, b"\xff\x00", None),
    ];
    for (decoder, bytes, text) in cases {
        let mut out = vec![0; bytes.len()];
        match decoder.decode_into(&hop(), bytes, &mut out, &mut Scratch::new()) {
            Ok(()) => {
                assert_eq!(text, None, "{decoder:?}");
                assert_eq!(out, bytes);
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Corrupt);
                let text = text.unwrap_or("no error at all");
                assert!(error.to_string().contains(text), "{text:?} in {error}");
            }
        }
    }
    assert_eq!(parse_text("ü".as_bytes()).unwrap(), "ü");
}

#[test]
fn case_58_pickles_are_refused() {
    for name in ["pkl", "model.pth", "x.pyd", "a.pickle", "t.pt"] {
        let decoder = Decoder::for_field(name);
        for error in [
            decoder.probe(b"\x80\x04.").unwrap_err(),
            decoder
                .decode_into(&hop(), b"\x80\x04.", &mut [0; 3], &mut Scratch::new())
                .unwrap_err(),
        ] {
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{name}");
            assert!(error.to_string().contains("is a pickle"), "{error}");
        }
    }
}

#[test]
fn the_last_extension_names_the_decoder() {
    let cases = [
        ("npy", Decoder::Npy),
        ("mask.NPZ", Decoder::Npz),
        ("cls", Decoder::Cls),
        ("cls2", Decoder::Cls),
        ("index", Decoder::Cls),
        ("count", Decoder::Cls),
        ("txt", Decoder::Text),
        ("text", Decoder::Text),
        ("json", Decoder::Json),
        ("mp3", Decoder::Raw),
        ("jpg.bin", Decoder::Raw),
        ("", Decoder::Raw),
    ];
    for (name, decoder) in cases {
        assert_eq!(Decoder::for_field(name), decoder, "{name:?}");
    }
    assert!(matches!(
        Decoder::for_field("left.png"),
        Decoder::Rgb { .. }
    ));
}

#[test]
fn what_a_value_will_be_is_known_from_its_header() {
    assert_eq!(Decoder::Cls.probe(b"3").unwrap(), Value::Int);
    assert_eq!(Decoder::Text.probe(b"abc").unwrap(), Value::Text);
    assert_eq!(Decoder::Json.probe(b"{}").unwrap(), Value::Json);
    assert_eq!(Decoder::Raw.probe(b"abc").unwrap(), Value::Bytes(3));
    assert!(Decoder::Npz.probe(b"no zip").is_err());
}
