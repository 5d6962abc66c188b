//! HTTP dates (RFC 9110 section 5.6.7), as seconds since 1970.
use crate::message::grammar::decimal;

const DAY: i64 = 86_400;
const MONTHS: [&[u8; 3]; 12] =
    [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];
const DAYS: [&[u8; 3]; 7] = [b"Sun", b"Mon", b"Tue", b"Wed", b"Thu", b"Fri", b"Sat"];
const LONG_DAYS: [&[u8]; 7] = [b"Sunday", b"Monday", b"Tuesday", b"Wednesday", b"Thursday", b"Friday", b"Saturday"];
/// 9999-12-31T23:59:59Z, the last date that a year of four digits can say.
const LAST: i64 = 253_402_300_799;

/// Reads a date in any of the three forms. Names are case-sensitive. `now` gives a year of two digits its century: one that "appears
/// to be more than 50 years in the future" is the most recent year in the past with the same last two digits.
pub fn parse_http_date(text: &[u8], now: i64) -> Option<i64> {
    match text {
        // Sun, 06 Nov 1994 08:49:37 GMT
        [d0, d1, d2, b',', b' ', day @ .., b' ', b'G', b'M', b'T'] if day.len() == 20 => {
            weekday([*d0, *d1, *d2])?;
            let (&[b' '], &[b' '], &[b' ']) = (&day[2..3], &day[6..7], &day[11..12]) else { return None };
            seconds(digits(&day[7..11])?, month(&day[3..6])?, digits(&day[..2])?, &day[12..])
        }
        // Sun Nov  6 08:49:37 1994
        [d0, d1, d2, b' ', rest @ ..] if rest.len() == 20 => {
            weekday([*d0, *d1, *d2])?;
            let (&[b' '], &[b' '], &[b' ']) = (&rest[3..4], &rest[6..7], &rest[15..16]) else { return None };
            let day = if rest[4] == b' ' { &rest[5..6] } else { &rest[4..6] };
            seconds(digits(&rest[16..])?, month(&rest[..3])?, digits(day)?, &rest[7..15])
        }
        _ => rfc_850(text, now),
    }
}

/// `Sunday, 06-Nov-94 08:49:37 GMT`
fn rfc_850(text: &[u8], now: i64) -> Option<i64> {
    let name = LONG_DAYS.iter().find(|name| text.starts_with(name))?;
    let rest = text[name.len()..].strip_prefix(b", ")?.strip_suffix(b" GMT")?;
    if rest.len() != 18 || rest[2] != b'-' || rest[6] != b'-' || rest[9] != b' ' {
        return None;
    }
    let this_year = civil(now.div_euclid(DAY)).0;
    let mut year = this_year - this_year.rem_euclid(100) + digits(&rest[7..9])?;
    if year > this_year + 50 {
        year -= 100;
    }
    seconds(year, month(&rest[3..6])?, digits(&rest[..2])?, &rest[10..])
}

/// A time as IMF-fixdate, the form that servers send. Years beyond the four digits are cut off at their ends.
pub fn imf_fixdate(time: i64) -> [u8; 29] {
    let time = time.clamp(0, LAST);
    let (days, rest) = (time.div_euclid(DAY), time.rem_euclid(DAY));
    let (year, month, day) = civil(days);
    let mut text = *b"Thu, 01 Jan 1970 00:00:00 GMT";
    text[..3].copy_from_slice(DAYS[(days + 4).rem_euclid(7) as usize]);
    text[8..11].copy_from_slice(MONTHS[month as usize - 1]);
    for (at, number) in
        [(5, day), (12, year / 100), (14, year % 100), (17, rest / 3600), (20, rest / 60 % 60), (23, rest % 60)]
    {
        text[at] = b'0' + (number / 10) as u8;
        text[at + 1] = b'0' + (number % 10) as u8;
    }
    text
}

/// `time`: `08:49:37`. A leap second is the second before it.
fn seconds(year: i64, month: i64, day: i64, time: &[u8]) -> Option<i64> {
    let &[h0, h1, b':', m0, m1, b':', s0, s1] = time else { return None };
    let (hour, minute, second) = (digits(&[h0, h1])?, digits(&[m0, m1])?, digits(&[s0, s1])?);
    let days = days(year, month, day);
    if hour > 23 || minute > 59 || second > 60 || civil(days) != (year, month, day) {
        return None;
    }
    Some(days * DAY + hour * 3600 + minute * 60 + second.min(59))
}

fn digits(text: &[u8]) -> Option<i64> {
    decimal(text).and_then(|number| i64::try_from(number).ok())
}

fn month(text: &[u8]) -> Option<i64> {
    MONTHS.iter().position(|name| *name == text).map(|at| at as i64 + 1)
}

/// Whether it is the right day for its date is of no matter.
fn weekday(text: [u8; 3]) -> Option<usize> {
    DAYS.iter().position(|name| **name == text)
}

/// Days since 1970 of a date of the Gregorian calendar, after Howard Hinnant's "chrono-compatible low-level date algorithms".
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year - era * 400;
    let day_of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// Year, month and day, by the same.
fn civil(days: i64) -> (i64, i64, i64) {
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let day_of_era = z.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day_of_year - (153 * shifted + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-29
    const NOW: i64 = 1_795_910_400;

    #[test]
    fn the_three_forms_of_the_rfc_are_the_same_time() {
        for text in ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"] {
            assert_eq!(parse_http_date(text.as_bytes(), NOW), Some(784_111_777), "{text}");
        }
        assert_eq!(parse_http_date(b"Wed Nov 16 08:49:37 1994", NOW), Some(784_975_777));
    }

    #[test]
    fn a_year_of_two_digits_is_at_most_fifty_years_ahead() {
        let year = |text: &str| parse_http_date(text.as_bytes(), NOW).map(|time| civil(time.div_euclid(DAY)).0);
        assert_eq!(year("Sunday, 06-Nov-76 08:49:37 GMT"), Some(2076));
        assert_eq!(year("Sunday, 06-Nov-77 08:49:37 GMT"), Some(1977));
        assert_eq!(year("Sunday, 06-Nov-00 08:49:37 GMT"), Some(2000));
    }

    #[test]
    fn what_is_no_date_is_none() {
        for text in [
            "",
            "now",
            "0",
            "784111777",
            "Sun, 06 Nov 1994 08:49:37",
            "Sun, 06 Nov 1994 08:49:37 UTC",
            "sun, 06 Nov 1994 08:49:37 GMT",
            "Sun, 6 Nov 1994 08:49:37 GMT",
            "Sun, 31 Feb 1994 08:49:37 GMT",
            "Sun, 00 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 24:49:37 GMT",
            "Sun, 06 Nov 1994 08:60:37 GMT",
            "Sun, 06 Nov 1994 08:49:61 GMT",
            "Sun, 06 Nov 1994 08-49-37 GMT",
            "Sun, 06 Nov 19a4 08:49:37 GMT",
            "Sun, +6 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-1994 08:49:37 GMT",
            "Sun Nov 06 08:49:37 94",
            "Sun, 06 Nov 1994 08:49:37 GMT, Sun, 06 Nov 1994 08:49:37 GMT",
        ] {
            assert_eq!(parse_http_date(text.as_bytes(), NOW), None, "{text}");
        }
    }

    #[test]
    fn a_leap_second_is_a_date() {
        let leap = parse_http_date(b"Sat, 31 Dec 2016 23:59:60 GMT", NOW);
        assert_eq!(leap, parse_http_date(b"Sat, 31 Dec 2016 23:59:59 GMT", NOW));
        assert!(leap.is_some());
    }

    #[test]
    fn what_is_written_is_read() {
        for time in [0, 784_111_777, 951_782_400, 951_868_799, NOW, LAST] {
            assert_eq!(parse_http_date(&imf_fixdate(time), NOW), Some(time));
        }
        assert_eq!(&imf_fixdate(784_111_777), b"Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(imf_fixdate(-1), imf_fixdate(0));
        assert_eq!(imf_fixdate(i64::MAX), imf_fixdate(LAST));
    }
}
