//! What came in place of a tar: an error page, a program's messages, another kind of archive. Told by its kind and never
//! by its words: a file that was named by mistake may hold secrets, and errors end up in logs.

use super::damage::Damage;

/// What the first block of something that is no tar looks like.
pub(super) fn not_a_tar(block: &[u8]) -> Option<Box<Damage>> {
    let damage = |why: String| Damage::corrupt("not_a_tar", 0, why);
    for (magic, name) in [
        (&b"BZh"[..], "bzip2"),
        (b"\xfd7zXZ\0", "xz"),
        (b"PK\x03\x04", "zip"),
        (b"PAR1", "parquet"),
        (b"\x04\x22\x4d\x18", "lz4"),
    ] {
        if block.starts_with(magic) {
            return Some(
                damage(format!("not a tar: looks like {name}"))
                    .with_help("onecopy reads plain, gzip and zstd tars: pack it again"),
            );
        }
    }
    let text = block.strip_prefix(b"\xef\xbb\xbf").unwrap_or(block);
    let text = text.trim_ascii_start();
    if text.starts_with(b"<") {
        return Some(
            damage(match code(text) {
                Some(code) => format!("not a tar: looks like an answer of S3: {code}"),
                None => "not a tar: looks like XML or HTML".to_owned(),
            })
            .with_help("a proxy or the server answered with a page: check URL and credentials"),
        );
    }
    let is_text = |byte: &u8| matches!(byte, b'\t' | b'\r' | b' '..=b'~' | 0x80..);
    let line = block.iter().position(|byte| !is_text(byte));
    match line {
        Some(end) if block[end] == b'\n' => Some(
            damage(format!("text before the tar: a line of {end} bytes"))
                .with_help("a program wrote its messages into the shard: write it again"),
        ),
        None if !block.is_empty() => Some(damage("not a tar: looks like text".to_owned())),
        _ => None,
    }
}

/// The code of an error as S3 writes it, of letters only: nothing that somebody keeps secret.
fn code(text: &[u8]) -> Option<&str> {
    let (_, rest) = std::str::from_utf8(text).ok()?.split_once("<Code>")?;
    let (code, _) = rest.split_once("</Code>")?;
    let is_code = (1..=64).contains(&code.len()) && code.bytes().all(|b| b.is_ascii_alphabetic());
    is_code.then_some(code)
}
