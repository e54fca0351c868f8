//! The two forms in which servers tell times.

/// `Sun, 06 Nov 1994 08:49:37 GMT` in seconds since the epoch.
pub(super) fn from_http(text: &str) -> Option<i64> {
    let mut words = text.split_once(", ")?.1.split(' ');
    let day = words.next()?.parse().ok()?;
    let name = words.next()?;
    let month = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]
    .iter()
    .position(|month| *month == name)?;
    let year = words.next()?.parse().ok()?;
    let time = clock(words.next()?)?;
    Some(days(year, i64::try_from(month).ok()? + 1, day)? * 86400 + time)
}

/// `1994-11-06T08:49:37.000Z` in seconds since the epoch.
pub(super) fn from_iso(text: &str) -> Option<i64> {
    let (date, time) = text.split_once('T')?;
    let mut parts = date.splitn(3, '-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    let time = time.strip_suffix('Z')?;
    Some(days(year, month, day)? * 86400 + clock(time.split('.').next()?)?)
}

fn clock(text: &str) -> Option<i64> {
    let mut parts = text.splitn(3, ':').map(|part| part.parse::<i64>().ok());
    let (hour, minute, second) = (parts.next()??, parts.next()??, parts.next()??);
    let is_time = (0..24).contains(&hour) && (0..60).contains(&minute) && (0..61).contains(&second);
    // Only now: a server may send numbers of any size.
    if is_time {
        Some(hour * 3600 + minute * 60 + second)
    } else {
        None
    }
}

/// Days since the epoch of a date of the Gregorian calendar (H. Hinnant, "chrono-compatible low-level date algorithms").
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    if !(1600..10000).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let year = if month <= 2 { year - 1 } else { year };
    let era = year / 400;
    let of_era = year - era * 400;
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    Some(era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_tell_the_same_time() {
        assert_eq!(
            from_http("Sun, 06 Nov 1994 08:49:37 GMT"),
            Some(784_111_777)
        );
        assert_eq!(from_iso("1994-11-06T08:49:37.000Z"), Some(784_111_777));
        assert_eq!(from_iso("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(from_iso("2000-02-29T23:59:59Z"), Some(951_868_799));
    }

    #[test]
    fn nonsense_is_no_time() {
        for text in [
            "",
            "T",
            "1994-11-06",
            "1994-13-06T00:00:00Z",
            "x, 6 Foo 1994 00:00:00 GMT",
            "Sun, 06 Nov 1994 08:9223372036854775807:37 GMT",
            "9223372036854775807-11-06T00:00:00Z",
            "1994-11-06T9223372036854775807:00:00Z",
        ] {
            assert_eq!((from_http(text), from_iso(text)), (None, None), "{text:?}");
        }
    }
}
