//! `X-Request-Start`: when a front end took the request, as it says.

/// Microseconds between the time in `value` and `now` (microseconds since 1970).
///
/// Front ends write `t=1700000000.123` (seconds), milliseconds or microseconds, with or without `t=`; how many digits there
/// are tells which. `None` for anything else, for the future, and for more than a day ago, which is no queue.
pub fn micros_since(value: &[u8], now: u64) -> Option<u64> {
    let value = value.strip_prefix(b"t=").unwrap_or(value);
    let (whole, fraction) = match value.iter().position(|byte| *byte == b'.') {
        Some(dot) => (&value[..dot], &value[dot + 1..]),
        None => (value, &value[..0]),
    };
    if whole.is_empty() || whole.len() > MOST_DIGITS || fraction.len() > MOST_DIGITS {
        return None;
    }
    let whole = digits(whole)?;
    let unit = match whole {
        MILLISECONDS.. => match whole {
            MICROSECONDS.. => 1,
            _ => 1_000,
        },
        _ => 1_000_000,
    };
    let mut started = whole.checked_mul(unit)?;
    let mut place = unit;
    for digit in fraction {
        place /= 10;
        started += place * digits(std::slice::from_ref(digit))?;
    }
    now.checked_sub(started).filter(|micros| *micros <= LONGEST)
}

fn digits(text: &[u8]) -> Option<u64> {
    text.iter().try_fold(0u64, |number, byte| byte.is_ascii_digit().then(|| number * 10 + u64::from(byte - b'0')))
}

/// Numbers from here on are milliseconds: as seconds they would be in the year 5138, as these in 1973.
const MILLISECONDS: u64 = 100_000_000_000;
/// Numbers from here on are microseconds.
const MICROSECONDS: u64 = 100_000_000_000_000;
const MOST_DIGITS: usize = 18;
/// A day.
const LONGEST: u64 = 86_400_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_700_000_000_500_000;

    #[test]
    fn seconds_milliseconds_and_microseconds_are_told_apart() {
        for (value, micros) in [
            ("t=1700000000.123", 377_000),
            ("1700000000.123", 377_000),
            ("t=1700000000", 500_000),
            ("1700000000.4999999", 1),
            ("1700000000123", 377_000),
            ("t=1700000000123", 377_000),
            ("1700000000123.5", 376_500),
            ("t=1700000000123456", 376_544),
            ("1700000000123456", 376_544),
            ("1700000000.5", 0),
            ("1699999000", 1_000_500_000),
            ("1700000000.", 500_000),
        ] {
            assert_eq!(micros_since(value.as_bytes(), NOW), Some(micros), "{value}");
        }
    }

    #[test]
    fn nonsense_and_the_future_are_nobodys_time() {
        for value in [
            "",
            "t=",
            "now",
            "-1",
            "1e9",
            "0",
            "1",
            "1700000001",
            "1700000000.6",
            "1700000000501",
            "99999999999999999999",
            "1700000000,1",
            "1600000000",
            "t=t=1700000000",
            " 1700000000",
            "1700000000.x",
            ".5",
            "1700000000.1.1",
            "18446744073709551615",
            "1700000000123456789",
        ] {
            assert_eq!(micros_since(value.as_bytes(), NOW), None, "{value}");
        }
    }
}
