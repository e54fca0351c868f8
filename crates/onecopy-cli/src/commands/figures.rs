//! Sizes and moments as people read them.

use std::fmt;

use serde::{Serialize, Serializer};

const DAY_SECONDS: i64 = 86_400;

/// Seconds since the epoch, shown as a date in UTC.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment(pub(super) i64);

/// `1.5 MiB`, in the largest unit that gives at least 1.
pub(super) fn human(len_bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if len_bytes < 1024 {
        return format!("{len_bytes} B");
    }
    let mut size = len_bytes as f64 / 1024.0;
    let mut unit = 0;
    // What would round to 1024.0 is 1.0 of the next unit.
    while size >= 1023.95 && unit + 1 < UNITS.len() {
        size /= 1024.0;
        unit += 1;
    }
    format!("{size:.1} {}", UNITS[unit])
}

impl Moment {
    /// Year, month and day of the proleptic Gregorian calendar (H. Hinnant, "chrono-compatible
    /// low-level date algorithms", `civil_from_days`).
    fn date(self) -> (i64, i64, i64) {
        let days = self.0.div_euclid(DAY_SECONDS) + 719_468;
        let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
        let year_of_era =
            (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let march_month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * march_month + 2) / 5 + 1;
        let month = if march_month < 10 {
            march_month + 3
        } else {
            march_month - 9
        };
        let year = year_of_era + era * 400 + i64::from(month <= 2);
        (year, month, day)
    }

    fn time(self) -> (i64, i64, i64) {
        let seconds = self.0.rem_euclid(DAY_SECONDS);
        (seconds / 3600, seconds / 60 % 60, seconds % 60)
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ((year, month, day), (hour, minute, second)) = (self.date(), self.time());
        write!(
            f,
            "{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}"
        )
    }
}

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&(self.to_string().replace(' ', "T") + "Z"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (unix, shown) in [
            (0, "1970-01-01 00:00:00"),
            (951_782_400, "2000-02-29 00:00:00"),
            (1_735_689_599, "2024-12-31 23:59:59"),
            (-1, "1969-12-31 23:59:59"),
        ] {
            assert_eq!(Moment(unix).to_string(), shown);
        }
    }

    #[test]
    fn sizes_are_shown_in_the_largest_unit() {
        for (len_bytes, shown) in [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB")] {
            assert_eq!(human(len_bytes), shown);
        }
        assert_eq!(human((1 << 20) - 1), "1.0 MiB");
        assert_eq!(human(u64::MAX), "16.0 EiB");
    }
}
