//! `shard_counts` of an `.info.yaml`, in the one form in which Megatron-Energon wrote it: a mapping in a mapping, one entry a
//! line. Any other YAML is refused.

use std::collections::BTreeMap;

const KEY: &str = "shard_counts:";

/// The samples of each shard, or what is wrong, with its line.
pub(super) fn shard_counts(bytes: &[u8]) -> Result<BTreeMap<String, u64>, String> {
    let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
    let mut counts = None;
    let mut is_within = false;
    for (number, line) in text.lines().enumerate() {
        let line = line.trim_end();
        let wrong = |why: &str| format!("line {}: {why}", number + 1);
        if line.is_empty() || line.trim_start().starts_with('#') || line == "---" {
            continue;
        }
        if !line.starts_with(' ') {
            is_within = line.starts_with(KEY);
            if !is_within {
                continue;
            }
            if counts.is_some() {
                return Err(wrong("shard_counts comes twice"));
            }
            counts = Some(BTreeMap::new());
            if !matches!(line[KEY.len()..].trim(), "" | "{}") {
                return Err(wrong("shard_counts is no mapping with an entry a line"));
            }
            continue;
        }
        if let (true, Some(counts)) = (is_within, &mut counts) {
            let entry = entry(line.trim_start());
            let (name, count) = entry.ok_or_else(|| wrong("it is no name with a count"))?;
            counts.insert(name, count);
        }
    }
    counts.ok_or_else(|| "it has no shard_counts".to_owned())
}

/// `name: 7`, the name plain or quoted.
fn entry(line: &str) -> Option<(String, u64)> {
    let (name, rest) = match line.chars().next()? {
        '\'' => single_quoted(line.get(1..)?)?,
        '"' => {
            // What YAML writes between double quotes is JSON, but for a few escapes that no name of a file needs.
            let mut values = serde_json::Deserializer::from_str(line).into_iter::<String>();
            let name = values.next()?.ok()?;
            (name, line.get(values.byte_offset()..)?)
        }
        '?' | '&' | '*' | '!' | '|' | '>' | '[' | '{' | '-' | '%' | '@' | '`' => return None,
        _ => {
            let at = line.rfind(": ")?;
            (line.get(..at)?.to_owned(), line.get(at..)?)
        }
    };
    let count = rest.strip_prefix(':')?.trim();
    let is_plain = count.bytes().all(|byte| byte.is_ascii_digit());
    Some((name, count.parse().ok().filter(|_| is_plain)?))
}

/// What stands before the closing quote, and what behind it. A quote within is doubled.
fn single_quoted(text: &str) -> Option<(String, &str)> {
    let mut name = String::new();
    let mut rest = text;
    loop {
        let (before, after) = rest.split_once('\'')?;
        name.push_str(before);
        match after.strip_prefix('\'') {
            Some(more) => {
                name.push('\'');
                rest = more;
            }
            None => return Some((name, after)),
        }
    }
}
