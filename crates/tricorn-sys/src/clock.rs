//! Time: monotonic nanoseconds for deadlines and histograms, wall-clock text for the Date field and the access log.
use rustix::time::{ClockId, clock_gettime};

pub const MILLI: u64 = 1_000_000;
pub const SECOND: u64 = 1_000_000_000;

/// Monotonic nanoseconds.
#[inline]
pub fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * SECOND + time.tv_nsec as u64
}

/// Processor time of all threads of the process, in nanoseconds.
pub fn process_cpu() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as u64 * SECOND + time.tv_nsec as u64
}

/// Processor time of the calling thread, in nanoseconds.
pub fn thread_cpu() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * SECOND + time.tv_nsec as u64
}

/// Microseconds since 1970.
pub fn wall_micros() -> u64 {
    let wall = clock_gettime(ClockId::Realtime);
    wall.tv_sec.max(0) as u64 * 1_000_000 + wall.tv_nsec as u64 / 1000
}

const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// The wall clock as text, made anew once a second.
#[derive(Debug, Clone)]
pub struct WallText {
    /// Monotonic time from which the texts are stale.
    stale_at: u64,
    /// At the last look at the clock, since the second that the texts name.
    millis: u16,
    /// IMF-fixdate (RFC 9110 section 5.6.7), 29 bytes.
    date: [u8; 29],
    /// `[21/Nov/2026:01:02:32 +0000]`, the access log's time.
    log: [u8; 28],
}

impl WallText {
    /// There is no text before the first one: a worker that leaves before it has looked for events may still answer.
    pub fn at(now: u64) -> WallText {
        let mut text = WallText { stale_at: 0, millis: 0, date: [0; 29], log: [0; 28] };
        text.refresh(now);
        text
    }

    #[inline]
    pub fn refresh(&mut self, now: u64) {
        if now >= self.stale_at {
            self.render(now);
        }
        let left = self.stale_at.saturating_sub(now).min(SECOND);
        self.millis = (((SECOND - left) / MILLI) as u16).min(999);
    }

    pub fn date(&self) -> &[u8] {
        &self.date
    }

    pub fn log_time(&self) -> &[u8] {
        &self.log
    }

    /// Milliseconds since the second that `log_time` names.
    pub fn millis(&self) -> u16 {
        self.millis
    }

    #[cold]
    fn render(&mut self, now: u64) {
        let wall = clock_gettime(ClockId::Realtime);
        self.stale_at = now + SECOND - (wall.tv_nsec as u64).min(SECOND - 1);
        let civil = Civil::from_unix(wall.tv_sec);
        let (y, d) = (civil.year, civil.day);
        let (h, m, s) = (civil.hour, civil.minute, civil.second);
        let month = MONTHS[civil.month as usize - 1];
        let weekday = DAYS[civil.weekday as usize];
        copy(&mut self.date, &format!("{weekday}, {d:02} {month} {y:04} {h:02}:{m:02}:{s:02} GMT"));
        copy(&mut self.log, &format!("[{d:02}/{month}/{y:04}:{h:02}:{m:02}:{s:02} +0000]"));
    }
}

/// Seconds since 1970.
pub fn wall_seconds() -> i64 {
    clock_gettime(ClockId::Realtime).tv_sec
}

/// Now as RFC 3339 has it: `2026-11-21T01:02:32.123456Z`.
pub fn timestamp() -> String {
    let wall = clock_gettime(ClockId::Realtime);
    let Civil { year, month, day, hour, minute, second, .. } = Civil::from_unix(wall.tv_sec);
    let micros = wall.tv_nsec / 1000;
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}Z")
}

fn copy(to: &mut [u8], from: &str) {
    let count = to.len().min(from.len());
    to[..count].copy_from_slice(&from.as_bytes()[..count]);
}

/// A point of UTC time in the Gregorian calendar.
#[derive(Debug, PartialEq, Eq)]
struct Civil {
    year: i64,
    month: i64,
    day: i64,
    weekday: i64,
    hour: i64,
    minute: i64,
    second: i64,
}

impl Civil {
    /// Days-to-civil after Howard Hinnant's "chrono-compatible low-level date algorithms".
    fn from_unix(seconds: i64) -> Civil {
        let days = seconds.div_euclid(86_400);
        let rest = seconds.rem_euclid(86_400);
        let z = days + 719_468;
        let era = z.div_euclid(146_097);
        let day_of_era = z.rem_euclid(146_097);
        let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted = (5 * day_of_year + 2) / 153;
        let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
        Civil {
            year: year_of_era + era * 400 + i64::from(month <= 2),
            month,
            day: day_of_year - (153 * shifted + 2) / 5 + 1,
            weekday: days.rem_euclid(7),
            hour: rest / 3600,
            minute: rest / 60 % 60,
            second: rest % 60,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_epoch_was_a_thursday() {
        let civil = Civil::from_unix(0);
        assert_eq!((civil.year, civil.month, civil.day), (1970, 1, 1));
        assert_eq!(DAYS[civil.weekday as usize], "Thu");
    }

    #[test]
    fn a_leap_day_is_a_day() {
        let civil = Civil::from_unix(1_709_210_096);
        assert_eq!((civil.year, civil.month, civil.day), (2024, 2, 29));
        assert_eq!((civil.hour, civil.minute, civil.second), (12, 34, 56));
        assert_eq!(DAYS[civil.weekday as usize], "Thu");
    }

    #[test]
    fn texts_have_their_fixed_shape() {
        let text = WallText::at(now());
        assert!(text.date().ends_with(b" GMT"));
        assert_eq!(text.log_time().first(), Some(&b'['));
        assert_eq!(text.log_time().last(), Some(&b']'));
    }

    #[test]
    fn milliseconds_count_from_the_second_that_is_rendered() {
        let mut text = WallText::at(now());
        let second = text.stale_at - SECOND;
        for (nanos, millis) in [(0, 0), (999_999, 0), (MILLI, 1), (500 * MILLI, 500), (SECOND - 1, 999)] {
            text.refresh(second + nanos);
            assert_eq!(text.millis(), millis);
        }
        text.refresh(second + SECOND);
        assert!(text.stale_at > second + SECOND, "the next second has its own text");
    }
}
