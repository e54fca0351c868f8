//! Pictures: each kind with the pixels that Pillow's `convert("RGB")` gives (`fixtures/make.py` made both).

use std::path::Path;

use onecopy::ErrorKind;
use onecopy::ledger::{Ledger, OpenHop};
use onecopy::route::Hop;
use onecopy::sample::decode::{DType, Decoder, Fit, MAX_PIXELS, Scratch, TensorLayout, Value};

const HEIGHT: usize = 24;
const WIDTH: usize = 40;

fn rgb(size: Option<(u32, u32)>, fit: Fit) -> Decoder {
    Decoder::Rgb { size, fit }
}

fn whole() -> Decoder {
    rgb(None, Fit::Crop)
}

fn fixture(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    std::fs::read(path.join(name)).unwrap_or_else(|error| unreachable!("{name}: {error}"))
}

fn hop() -> OpenHop {
    Ledger::unread().hop(Hop::Decode)
}

fn decoded(decoder: Decoder, bytes: &[u8]) -> onecopy::Result<(Vec<usize>, Vec<u8>)> {
    let layout = match decoder.probe(bytes)? {
        Value::Tensor(layout) => layout,
        other => unreachable!("a picture is a tensor, not {other:?}"),
    };
    assert_eq!(layout.dtype, DType::U8);
    assert!(layout.is_channels_last && !layout.is_fortran);
    let mut out = vec![0xaa; layout.len_bytes()];
    decoder.decode_into(&hop(), bytes, &mut out, &mut Scratch::new())?;
    Ok((layout.shape, out))
}

fn kind_of(decoder: Decoder, bytes: &[u8]) -> Option<ErrorKind> {
    decoded(decoder, bytes).err().map(|error| error.kind())
}

fn far_apart(left: &[u8], right: &[u8]) -> u8 {
    let pairs = left.iter().zip(right);
    pairs.map(|(a, b)| a.abs_diff(*b)).max().unwrap_or(0)
}

fn encoded_png(
    color: png::ColorType,
    depth: png::BitDepth,
    pixels: &[u8],
    size: (u32, u32),
) -> Vec<u8> {
    let mut out = Vec::new();
    let mut encoder = png::Encoder::new(&mut out, size.0, size.1);
    encoder.set_color(color);
    encoder.set_depth(depth);
    if let Ok(mut writer) = encoder.write_header() {
        assert!(writer.write_image_data(pixels).is_ok());
    }
    out
}

#[test]
fn case_57_every_kind_of_picture_is_what_pillow_makes_of_it() {
    let cases = [
        // Two decoders may round the transform and the upsampling of colours differently.
        ("baseline.jpg", 6),
        ("progressive.jpg", 6),
        ("gray.jpg", 3),
        ("cmyk.jpg", 6),
        ("restart.jpg", 6),
        // Turned by its tag: which is left to the reader, as Pillow does.
        ("exif.jpg", 6),
        ("lossy.webp", 6),
        ("lossless.webp", 0),
        ("alpha.webp", 0),
        ("animated.webp", 0),
        ("palette.png", 0),
        ("bilevel.png", 0),
    ];
    for (name, tolerance) in cases {
        let (shape, pixels) = decoded(whole(), &fixture(name)).unwrap();
        assert_eq!(shape, [3, HEIGHT, WIDTH], "{name}");
        let apart = far_apart(&pixels, &fixture(&format!("{name}.rgb")));
        assert!(apart <= tolerance, "{name}: {apart} apart");
    }
}

#[test]
fn case_57_a_png_under_the_name_of_a_jpeg_is_told_by_magic() {
    assert_eq!(Decoder::for_field("jpg"), whole());
    let pixels = [1, 2, 3];
    let png = encoded_png(png::ColorType::Rgb, png::BitDepth::Eight, &pixels, (1, 1));
    let (shape, out) = decoded(Decoder::for_field("left.JPG"), &png).unwrap();
    assert_eq!((shape, out), (vec![3, 1, 1], vec![1, 2, 3]));
}

#[test]
fn case_57_one_pixel() {
    let mut jpeg = Vec::new();
    let encoder = jpeg_encoder::Encoder::new(&mut jpeg, 100);
    encoder
        .encode(&[200, 100, 50], 1, 1, jpeg_encoder::ColorType::Rgb)
        .unwrap();
    let (shape, pixels) = decoded(whole(), &jpeg).unwrap();
    assert_eq!(shape, [3, 1, 1]);
    assert!(far_apart(&pixels, &[200, 100, 50]) <= 3, "{pixels:?}");
}

#[test]
fn every_colour_type_of_png_becomes_rgb() {
    use png::BitDepth::{Eight, Sixteen, Two};
    use png::ColorType::{Grayscale, GrayscaleAlpha, Rgb, Rgba};
    let cases: [(_, _, &[u8], &[u8]); 7] = [
        (Grayscale, Eight, &[7, 9], &[7, 7, 7, 9, 9, 9]),
        (Grayscale, Two, &[0b0111_0000], &[85, 85, 85, 255, 255, 255]),
        (Grayscale, Sixteen, &[7, 200, 9, 1], &[7, 7, 7, 9, 9, 9]),
        (GrayscaleAlpha, Eight, &[7, 0, 9, 9], &[7, 7, 7, 9, 9, 9]),
        (Rgba, Eight, &[1, 2, 3, 0, 4, 5, 6, 9], &[1, 2, 3, 4, 5, 6]),
        (Rgb, Eight, &[1, 2, 3, 4, 5, 6], &[1, 2, 3, 4, 5, 6]),
        (
            Rgb,
            Sixteen,
            &[1, 0, 2, 0, 3, 0, 4, 255, 5, 255, 6, 255],
            &[1, 2, 3, 4, 5, 6],
        ),
    ];
    for (color, depth, pixels, expected) in cases {
        let png = encoded_png(color, depth, pixels, (2, 1));
        let (shape, out) = decoded(whole(), &png).unwrap();
        assert_eq!(
            (shape, &*out),
            (vec![3, 1, 2], expected),
            "{color:?} {depth:?}"
        );
    }
}

#[test]
fn case_57_a_cut_anywhere_is_an_error() {
    let names = [
        "baseline.jpg",
        "progressive.jpg",
        "gray.jpg",
        "exif.jpg",
        "lossy.webp",
        "lossless.webp",
        "palette.png",
    ];
    for name in names {
        let bytes = fixture(name);
        for len in 0..bytes.len() {
            let kind = kind_of(whole(), &bytes[..len]);
            assert!(
                matches!(kind, Some(ErrorKind::Truncated | ErrorKind::Corrupt)),
                "{name} cut at {len} of {}: {kind:?}",
                bytes.len()
            );
        }
    }
}

#[test]
fn what_follows_the_end_of_a_picture_is_not_its_own() {
    for name in [
        "baseline.jpg",
        "progressive.jpg",
        "lossy.webp",
        "palette.png",
    ] {
        let mut bytes = fixture(name);
        bytes.extend([0; 100]);
        assert_eq!(kind_of(whole(), &bytes), None, "{name}");
    }
}

#[test]
fn stray_bytes_between_headers_are_forgiven() {
    let bytes = fixture("baseline.jpg");
    // Behind the start mark and the JFIF segment.
    let (head, tail) = bytes.split_at(20);
    let strayed = [head, &[0; 7], tail].concat();
    assert_eq!(kind_of(whole(), &strayed), None);
}

#[test]
fn a_header_that_asks_for_too_much_is_refused_before_any_memory_is_taken() {
    let mut jpeg = fixture("baseline.jpg");
    let frame = jpeg.windows(2).position(|pair| pair == [0xff, 0xc0]);
    let at = frame.unwrap() + 5;
    jpeg[at..at + 4].fill(0xff);
    let mut png = fixture("palette.png");
    png[16..24].fill(0x7f);
    for bytes in [jpeg, png] {
        let error = whole().probe(&bytes).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LimitReached);
        assert!(error.to_string().contains(&MAX_PIXELS.to_string()));
    }
    let asked = Decoder::Rgb {
        size: Some((60_000, 60_000)),
        fit: Fit::Crop,
    };
    let error = asked.probe(&fixture("baseline.jpg")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LimitReached);
    assert!(error.help().unwrap().contains("`size=224`"), "{error:?}");
}

#[test]
fn what_is_no_picture_is_named() {
    let cases: [(&[u8], ErrorKind, &str); 4] = [
        (b"", ErrorKind::Truncated, "it is empty"),
        (b"GIF89a......", ErrorKind::Corrupt, "begins with \"GIF89a"),
        (b"<html>", ErrorKind::Corrupt, "no JPEG, PNG or WebP"),
        (b"\xff\xd8\xff\xd9", ErrorKind::Truncated, "no picture data"),
    ];
    for (bytes, kind, text) in cases {
        let error = whole().probe(bytes).unwrap_err();
        assert_eq!(error.kind(), kind);
        assert!(error.to_string().contains(text), "{error}");
    }
}

#[test]
fn a_size_is_what_comes_out_by_crop_and_by_stretch() {
    // Left half black, right half white, 40 x 20: the middle square of it has the border in its middle.
    let row: Vec<u8> = (0..40)
        .flat_map(|x| [if x < 20 { 0 } else { 255 }; 3])
        .collect();
    let png = encoded_png(
        png::ColorType::Rgb,
        png::BitDepth::Eight,
        &row.repeat(20),
        (40, 20),
    );
    for fit in [Fit::Crop, Fit::Stretch] {
        let decoder = rgb(Some((10, 10)), fit);
        let layout = TensorLayout::rgb(10, 10);
        assert_eq!(decoder.probe(&png).unwrap(), Value::Tensor(layout));
        let (_, pixels) = decoded(decoder, &png).unwrap();
        assert_eq!((pixels[0], pixels[9 * 3]), (0, 255), "{fit:?}");
    }
    // Only a stretch sees the left edge.
    let mut edged = row.repeat(20);
    edged
        .chunks_exact_mut(120)
        .for_each(|row| row[..3].fill(255));
    let png = encoded_png(png::ColorType::Rgb, png::BitDepth::Eight, &edged, (40, 20));
    let left = |fit| decoded(rgb(Some((10, 10)), fit), &png).unwrap().1[0];
    assert_eq!(left(Fit::Crop), 0);
    assert!(left(Fit::Stretch) > 30);
}

#[test]
fn a_wish_for_the_size_it_has_changes_nothing_and_another_target_is_refused() {
    let bytes = fixture("baseline.jpg");
    let sized = decoded(rgb(Some((24, 40)), Fit::Crop), &bytes).unwrap();
    assert_eq!(sized, decoded(whole(), &bytes).unwrap());
    let mut small = [0; 10];
    let error = whole()
        .decode_into(&hop(), &bytes, &mut small, &mut Scratch::new())
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    let none = rgb(Some((0, 5)), Fit::Crop);
    assert_eq!(kind_of(none, &bytes), Some(ErrorKind::InvalidInput));
}

#[test]
fn one_scratch_serves_pictures_of_every_size_and_kind() {
    let mut scratch = Scratch::new();
    for (name, size) in [
        ("baseline.jpg", Some((8, 8))),
        ("alpha.webp", Some((64, 64))),
        ("bilevel.png", None),
        ("alpha.webp", None),
        ("gray.jpg", Some((3, 5))),
    ] {
        let (bytes, decoder) = (fixture(name), rgb(size, Fit::Crop));
        let (_, fresh) = decoded(decoder, &bytes).unwrap();
        let mut out = vec![0; fresh.len()];
        decoder
            .decode_into(&hop(), &bytes, &mut out, &mut scratch)
            .unwrap();
        assert!(out == fresh, "{name}");
    }
}

#[test]
fn the_ledger_counts_what_went_into_the_decoder() {
    let ledger = Ledger::unread();
    let bytes = fixture("baseline.jpg");
    let mut out = vec![0; HEIGHT * WIDTH * 3];
    whole()
        .decode_into(
            &ledger.hop(Hop::Decode),
            &bytes,
            &mut out,
            &mut Scratch::new(),
        )
        .unwrap();
    let report = ledger.report();
    assert_eq!((report.hops.len(), report.hops[0].hop), (1, "decode"));
    assert_eq!(report.hops[0].bytes, bytes.len() as u64);
}
