//! What came in place of a tar: an error page, a program's messages, another kind of archive.

use super::damage::Damage;
use super::header;

/// What the first block of something that is no tar looks like.
pub(super) fn not_a_tar(block: &[u8]) -> Option<Box<Damage>> {
    let damage = |why: String| Damage::corrupt("not_a_tar", 0, why);
    let shown = |len: usize| {
        let head = &block[..block.len().min(len)];
        String::from_utf8_lossy(header::until_nul(head)).into_owned()
    };
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
            damage(format!("not a tar: looks like XML/HTML: {:?}", shown(200)))
                .with_help("a proxy or the server answered with a page: check URL and credentials"),
        );
    }
    let is_text = |byte: &u8| matches!(byte, b'\t' | b'\r' | b' '..=b'~' | 0x80..);
    let line = block.iter().position(|byte| !is_text(byte));
    match line {
        Some(end) if block[end] == b'\n' => Some(
            damage(format!("text before the tar: {:?}", shown(end)))
                .with_help("a program wrote its messages into the shard: write it again"),
        ),
        None if !block.is_empty() => Some(damage(format!(
            "not a tar: looks like text: {:?}",
            shown(200)
        ))),
        _ => None,
    }
}
