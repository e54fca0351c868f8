//! PAX records: `<length> <keyword>=<value>\n`, one after the other.

/// What the records of one extended header say that is needed here; everything else is passed over.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Pax {
    /// The member's whole name.
    pub(super) path: Option<Vec<u8>>,
    /// The member's size in bytes.
    pub(super) size: Option<u64>,
    /// Whether the member has holes.
    pub(super) is_sparse: bool,
}

/// Reads records; none where they are malformed.
pub(super) fn parse(mut records: &[u8]) -> Option<Pax> {
    let mut pax = Pax::default();
    // Some writers pad the records with NULs.
    while let Some(&first) = records.first()
        && first != 0
    {
        let space = records.iter().take(20).position(|&byte| byte == b' ')?;
        let len = decimal(&records[..space])?;
        let len = usize::try_from(len).ok()?;
        let record = records.get(..len)?;
        let (&end, keyed) = record.get(space + 1..)?.split_last()?;
        if end != b'\n' {
            return None;
        }
        let equals = keyed.iter().position(|&byte| byte == b'=')?;
        let (keyword, value) = (&keyed[..equals], &keyed[equals + 1..]);
        match keyword {
            // The last one wins, and an empty one takes the word back: so says POSIX.
            b"path" => pax.path = (!value.is_empty()).then(|| value.into()),
            b"size" if value.is_empty() => pax.size = None,
            b"size" => pax.size = Some(decimal(value)?),
            _ if keyword.starts_with(b"GNU.sparse.") => pax.is_sparse = true,
            _ => {}
        }
        records = &records[len..];
    }
    Some(pax)
}

fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |value, &digit| {
        let digit = digit.checked_sub(b'0').filter(|&digit| digit < 10)?;
        value.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_needs_and_passes_over_the_rest() {
        let pax = parse(b"12 path=a/b\n10 size=5\n22 LIBARCHIVE.xyz=a=b\n").unwrap();
        assert_eq!(pax.path.as_deref(), Some(&b"a/b"[..]));
        assert_eq!((pax.size, pax.is_sparse), (Some(5), false));
        assert_eq!(parse(b"").unwrap(), Pax::default());
        assert_eq!(
            parse(b"12 path=a/b\n9 path=b\n8 path=\n").unwrap().path,
            None
        );
        assert!(parse(b"22 GNU.sparse.major=1\n").unwrap().is_sparse);
    }

    #[test]
    fn malformed_records_are_none() {
        let cases: [&[u8]; 9] = [
            b"path=a\n",
            b"0 path=a\n",
            b"2 path=a\n",
            b"99 path=a\n",
            b"9 path=aa\n",
            b"99999999999999999999 path=a\n",
            b"7 patha\n",
            b"9 size=x\n",
            b"-9 path=b\n",
        ];
        for records in cases {
            assert_eq!(parse(records), None, "{}", records.escape_ascii());
        }
    }
}
