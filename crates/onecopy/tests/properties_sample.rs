//! What holds for any tar, any split and any damage.
#![expect(clippy::disallowed_methods, reason = "test output, not payload")]

mod sample_support;

use onecopy::config::OnError;
use onecopy::sample::SampleOptions;
use proptest::prelude::*;
use sample_support::*;

/// Samples: a key number, and fields with content.
type Samples = Vec<Vec<(String, Vec<u8>)>>;

fn samples() -> impl Strategy<Value = Samples> {
    let field = ("[a-z]{1,4}", prop::collection::vec(any::<u8>(), 0..1500));
    let fields = prop::collection::vec(field, 1..4).prop_map(|mut fields| {
        fields.sort();
        fields.dedup_by(|a, b| a.0 == b.0);
        fields
    });
    prop::collection::vec(fields, 1..6)
}

/// Writes samples, each member in the dialect that `dialect` names.
fn tar_of(samples: &Samples, dialect: u8) -> Vec<u8> {
    let mut tar = Tar::new();
    for (number, fields) in samples.iter().enumerate() {
        for (field, content) in fields {
            let name = format!("folder.d/{number:04}.{field}");
            tar = match (dialect as usize + number) % 4 {
                0 => tar.file(&name, content),
                1 => tar.long_name(b'L', &name).file("short", content),
                2 => tar
                    .pax(
                        b'x',
                        &[("path", &name), ("size", &content.len().to_string())],
                    )
                    .raw(Header::new(b"short", 0), content),
                _ => tar.raw(
                    Header::new(name.as_bytes(), content.len())
                        .put(257, &[0; 8])
                        .flag(0),
                    content,
                ),
            };
        }
    }
    tar.end()
}

fn contents(outcome: &Outcome) -> Samples {
    let samples = outcome.samples.iter().map(|sample| {
        let fields = sample.fields.iter();
        fields
            .map(|field| (field.name.clone(), field.bytes.to_vec()))
            .collect()
    });
    samples.collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(96) })]

    #[test]
    fn any_tar_in_any_split_gives_its_members(
        samples in samples(),
        dialect in 0..4_u8,
        lens in prop::collection::vec(1..3000_usize, 1..6),
    ) {
        let bytes = tar_of(&samples, dialect);
        let len = Some(bytes.len() as u64);
        let outcome = read_pieces(strangers(&bytes, &lens), len, SampleOptions::default());
        prop_assert_eq!(outcome.error_text(), "");
        prop_assert_eq!(&contents(&outcome), &samples);
        let outcome = read_pieces(neighbours(&bytes, lens[0]), len, SampleOptions::default());
        prop_assert_eq!(&contents(&outcome), &samples);
    }

    #[test]
    fn a_cut_is_never_silent(samples in samples(), dialect in 0..4_u8, at in any::<prop::sample::Index>()) {
        let bytes = tar_of(&samples, dialect);
        let at = at.index(bytes.len());
        let whole = bytes.len() as u64;
        let outcome = read_pieces(strangers(&bytes[..at], &[700]), Some(whole), SampleOptions::default());
        prop_assert!(outcome.error.is_some());
        let all = contents(&outcome);
        prop_assert!(all.len() <= samples.len());
        // A sample may lack members only where it is the last before the damage.
        for (got, put) in all.iter().zip(&samples).take(all.len().saturating_sub(1)) {
            prop_assert_eq!(got, put);
        }
        let outcome = read_pieces(strangers(&bytes[..at], &[700]), Some(whole), options(OnError::Skip));
        prop_assert_eq!(outcome.lost().1, 1);
        // Nobody knows the length: only a cut in the end mark can pass.
        let outcome = read_pieces(strangers(&bytes[..at], &[700]), None, SampleOptions::default());
        prop_assert!(outcome.error.is_some() || contents(&outcome) == samples);
    }

    #[test]
    fn a_flipped_header_byte_is_never_silent(
        samples in samples(),
        member in any::<prop::sample::Index>(),
        at in 0..512_usize,
        flip in 1..=255_u8,
    ) {
        let mut bytes = tar_of(&samples, 0);
        let headers: Vec<_> = (0..bytes.len())
            .step_by(512)
            .filter(|&start| &bytes[start + 257..start + 262] == b"ustar")
            .collect();
        let start = headers[member.index(headers.len())];
        bytes[start + at] ^= flip;
        let outcome = read(&bytes);
        // Spaces and NULs around the checksum may be exchanged without harm: then nothing is missing.
        prop_assert!(outcome.error.is_some() || contents(&outcome) == samples);
        let outcome = skip(&bytes);
        prop_assert!(
            outcome.lost().1 > 0 || contents(&outcome) == samples
        );
    }

    #[test]
    fn any_bytes_at_all_end_without_a_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..4000),
        magic in prop::sample::select(vec![&b""[..], b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd", b"<html"]),
    ) {
        let bytes = [magic, &bytes].concat();
        let outcome = read(&bytes);
        let is_zeros = bytes.iter().all(|&byte| byte == 0);
        prop_assert!(outcome.error.is_some() || is_zeros);
    }

    #[test]
    fn flips_anywhere_never_panic(
        samples in samples(),
        dialect in 0..4_u8,
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
    ) {
        let mut bytes = tar_of(&samples, dialect);
        for (at, flip) in flips {
            let at = at.index(bytes.len());
            bytes[at] ^= flip;
        }
        let outcome = read(&bytes);
        let fields = |samples: &Samples| samples.iter().map(Vec::len).sum::<usize>();
        // The content of extended headers has no checksum: a name may change there, but it stays a member.
        prop_assert!(
            outcome.error.is_some()
                || !outcome.counted().is_empty()
                || fields(&contents(&outcome)) == fields(&samples)
        );
    }
}
