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
    let cases: [(Decoder, &[u8], Option<&str>); 10] = [
        (Decoder::Json, b"\xef\xbb\xbf{\"a\": 1}", None),
        (Decoder::Json, b"{\"a\": NaN}", None),
        (Decoder::Json, b" NaN", None),
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
fn case_54_json_is_what_python_reads_and_nothing_else() {
    fn utf(width: usize, is_big: bool, mark: &str, text: &str) -> Vec<u8> {
        let units = mark.chars().chain(text.chars()).map(u32::from);
        let bytes = units.flat_map(|unit| {
            let bytes = unit.to_be_bytes();
            let mut bytes: Vec<u8> = bytes.into_iter().skip(4 - width).collect();
            if !is_big {
                bytes.reverse();
            }
            bytes
        });
        bytes.collect()
    }
    let mut good: Vec<Vec<u8>> = [
        &b"1"[..],
        b" [1, 2.5, -0, -0.0, 1e5, 1E-5, 1e+400, 0.1e1] \n",
        b"{\"a\": {\"b\": [[], {}, [{}]]}, \"a\": 2, \"\": null}",
        b"[true, false, null, NaN, Infinity, -Infinity]",
        b"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\uD83D\\uDE00\"",
        // Surrogates without a partner, as an escape and as bytes.
        b"\"\\ud800\"",
        b"[\"\xed\xa0\x80\", \"\xed\xbf\xbf \xc3\xa9\"]",
        "\"\u{1f600}\u{7f}\u{85}\"".as_bytes(),
        b"\xef\xbb\xbf[1]",
    ]
    .map(Vec::from)
    .into();
    for text in ["1", "[1, NaN]", "{\"\u{e9}\": \"\u{4e00}\"}"] {
        for is_big in [false, true] {
            for width in [2, 4] {
                good.push(utf(width, is_big, "", text));
                good.push(utf(width, is_big, "\u{feff}", text));
            }
        }
    }
    good.push(format!("-{}", "1".repeat(4300)).into_bytes());
    good.push(format!("{}.5", "1".repeat(100_000)).into_bytes());
    good.push(format!("{}{}", "[".repeat(900), "]".repeat(900)).into_bytes());
    good.push("{\"a\":".repeat(899).into_bytes());
    if let Some(last) = good.last_mut() {
        last.extend(b"{}");
        last.extend([b'}'; 899]);
    }
    for bytes in good {
        let outcome = json(&bytes);
        assert!(outcome.is_ok(), "{outcome:?} for {}", bytes.escape_ascii());
    }
}

fn json(bytes: &[u8]) -> onecopy::Result<()> {
    let mut out = vec![0; bytes.len()];
    Decoder::Json.decode_into(&hop(), bytes, &mut out, &mut Scratch::new())
}

#[test]
fn case_54_json_that_is_none_says_where() {
    use ErrorKind::{Corrupt, LimitReached};
    let cases: [(&[u8], &str); 40] = [
        (b"", "it is empty"),
        (b"\xef\xbb\xbf ", "it is empty"),
        (b"{", "ends too early, at byte 1"),
        (b"[1, ", "ends too early, at byte 4"),
        (b"[1", "ends too early, at byte 2"),
        (b"{\"a\"", "ends too early, at byte 4"),
        (b"{\"a\":", "ends too early, at byte 5"),
        (b"\"abc", "ends too early, at byte 4"),
        (b"\"abc\\", "ends too early, at byte 4"),
        (b"-", "ends too early, at byte 1"),
        (b"}", "begins with '}', at byte 0"),
        (b"[1,]", "begins with ']', at byte 3"),
        (b"[,1]", "begins with ',', at byte 1"),
        (b"{\"a\": 1,}", "a key is no string, at byte 8"),
        (b"{1: 2}", "a key is no string, at byte 1"),
        (b"{NaN: 2}", "a key is no string, at byte 1"),
        (b"{\"a\" 1}", "no : follows a key, at byte 5"),
        (b"[1 2]", "neither , nor ] follows a value, at byte 3"),
        (b"[1}", "neither , nor ] follows a value, at byte 2"),
        (b"{\"a\": 1]", "neither , nor } follows a value, at byte 7"),
        (b"1 2", "more behind its value, at byte 2"),
        (b"{} {}", "more behind its value, at byte 3"),
        (b"01", "more behind its value, at byte 1"),
        (b"1.", "more behind its value, at byte 1"),
        (b"1.e5", "more behind its value, at byte 1"),
        (b"1e", "more behind its value, at byte 1"),
        (b"nullx", "more behind its value, at byte 4"),
        (b"-NaN", "no digit follows a -, at byte 1"),
        (b"+1", "begins with '+', at byte 0"),
        (b".5", "begins with '.', at byte 0"),
        (b"nul", "begins with 'n', at byte 0"),
        (b"'a'", "begins with '\\'', at byte 0"),
        (b"[1] // x", "more behind its value, at byte 4"),
        (b"\"a\nb\"", "control character, at byte 2"),
        (b"\"\\x41\"", "unknown escape, at byte 1"),
        (b"\"\\u12g4\"", "unknown escape, at byte 1"),
        (b"\"\\u123\"", "unknown escape, at byte 1"),
        (b"[\"\xed\xa0\x80\", \"\xff\"]", "not UTF-8 at byte 9"),
        (b"\xff\xfe[\0]\0]\0", "more behind its value, at byte 6"),
        (b"\xff\xfe[\0]", "not UTF-16 at byte 4"),
    ];
    for (bytes, text) in cases {
        let error = json(bytes).unwrap_err();
        assert_eq!(error.kind(), Corrupt);
        let error = error.to_string();
        assert!(
            error.contains(text),
            "{text:?} in {error} for {}",
            bytes.escape_ascii()
        );
    }
    let digits = "1".repeat(4301);
    let deep = "[".repeat(1_000_000);
    for (text, why) in [
        (format!("[{digits}]"), "more than 4300 digits, at byte 1"),
        (deep, "more than 900 levels deep, at byte 900"),
    ] {
        let error = json(text.as_bytes()).unwrap_err();
        assert_eq!(error.kind(), LimitReached);
        assert!(error.to_string().contains(why), "{error}");
    }
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
