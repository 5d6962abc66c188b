//! What the scoreboards of a group tell the limiter: windows, made of the differences between two readings.

use super::{WINDOW, Window};
use crate::scoreboard::{APP_TIME, BUCKETS, Scoreboard, State, Word, bucket_floor};
use rustix::process::{Pid, test_kill_process};
use tricorn_sys::clock::MILLI;

/// From one reading of the gauges to the next.
pub const GLANCE: u64 = 10 * MILLI;
/// A window goes on until it has so many samples, or is as long as one may be.
const SAMPLES: u64 = 40;

/// Reads the pages of all workers of a group.
#[derive(Debug)]
pub struct Windows {
    pages: Vec<Seen>,
    /// The histogram of the window so far.
    histogram: [u64; BUCKETS],
    most: u64,
    threads: u64,
    /// When the window began.
    since: u64,
    read_at: u64,
}

/// A page as it was last read.
#[derive(Debug)]
struct Seen {
    pid: u64,
    alive: bool,
    counters: [u64; BUCKETS],
}

impl Windows {
    /// What was counted until now is in no window.
    pub fn new(pages: impl Iterator<Item = Scoreboard> + Clone, now: u64) -> Windows {
        let mut windows =
            Windows { pages: Vec::new(), histogram: [0; BUCKETS], most: 0, threads: 0, since: now, read_at: now };
        windows.read(pages.clone(), now);
        windows.histogram = [0; BUCKETS];
        windows.glance(pages);
        windows
    }

    /// The app threads of all workers that serve.
    pub fn threads(&self) -> u64 {
        self.threads
    }

    /// Looks at the pages, which come in the order of their indexes; returns the window if it is over, which is when it
    /// lasted for `length` and has samples to speak of.
    pub fn look(&mut self, pages: impl Iterator<Item = Scoreboard> + Clone, length: u64, now: u64) -> Option<Window> {
        self.glance(pages.clone());
        if now < self.since + length || now < self.read_at + length.min(WINDOW.0) {
            return None;
        }
        self.read(pages, now);
        let count = self.histogram.iter().sum();
        if count < SAMPLES && now < self.since + WINDOW.1 {
            return None;
        }
        let octiles = std::array::from_fn(|index| quantile(&self.histogram, count as f64 * (index + 1) as f64 / 8.0));
        let window = Window { count, octiles, most: self.most };
        self.histogram = [0; BUCKETS];
        self.most = 0;
        self.since = now;
        Some(window)
    }

    fn glance(&mut self, pages: impl Iterator<Item = Scoreboard>) {
        let (mut running, mut threads) = (0, 0);
        for (index, page) in pages.enumerate() {
            // One that began since the last reading is not known yet.
            if self.pages.get(index).is_some_and(|seen| !seen.alive && seen.pid == page.get(Word::Pid)) {
                continue;
            }
            let state = page.get(Word::State);
            if state == State::Serving as u64 {
                threads += page.get(Word::Threads);
            }
            if state == State::Serving as u64 || state == State::Draining as u64 {
                running += page.get(Word::InFlight);
            }
        }
        self.most = self.most.max(running);
        self.threads = threads;
    }

    /// Adds what was counted since the last reading.
    fn read(&mut self, pages: impl Iterator<Item = Scoreboard>, now: u64) {
        self.read_at = now;
        for (index, page) in pages.enumerate() {
            if index == self.pages.len() {
                self.pages.push(Seen { pid: 0, alive: false, counters: [0; BUCKETS] });
            }
            let seen = &mut self.pages[index];
            let pid = page.get(Word::Pid);
            if seen.pid != pid {
                // Another worker has the page, and began it at 0.
                *seen = Seen { pid, alive: true, counters: [0; BUCKETS] };
            }
            seen.alive = is_alive(pid);
            for (bucket, last) in seen.counters.iter_mut().enumerate() {
                let count = page.word(APP_TIME + bucket);
                // A worker that begins its page says who it is last.
                self.histogram[bucket] += count.checked_sub(*last).unwrap_or(count);
                *last = count;
            }
        }
    }
}

/// Whether there is such a process; its page stays as it was when it was killed.
pub(super) fn is_alive(pid: u64) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| test_kill_process(pid) != Err(rustix::io::Errno::SRCH))
}

/// The latency in nanoseconds below which `rank` samples are, as if a bucket's were spread evenly over it.
fn quantile(histogram: &[u64; BUCKETS], rank: f64) -> u64 {
    let mut below = 0.0;
    for (bucket, count) in histogram.iter().enumerate() {
        let count = *count as f64;
        if count > 0.0 && below + count >= rank {
            let (from, to) = (bucket_floor(bucket) as f64, bucket_floor(bucket + 1) as f64);
            return (from + (to - from) * (rank - below) / count) as u64;
        }
        below += count;
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn board(threads: usize) -> Scoreboard {
        let board = Scoreboard::private(threads);
        board.begin(threads);
        board.state(State::Serving);
        board
    }

    fn observe(board: &Scoreboard, count: usize, nanos: u64) {
        (0..count).for_each(|_| board.observe(APP_TIME, nanos));
    }

    #[test]
    fn a_window_has_what_was_counted_in_it_and_nothing_before() {
        let boards = [board(2), board(3)];
        observe(&boards[0], 1000, 1_000_000);
        let mut windows = Windows::new(boards.iter().copied(), 0);
        observe(&boards[0], 30, 10_000_000);
        observe(&boards[1], 10, 40_000_000);
        boards[0].set(Word::InFlight, 2);
        assert_eq!(windows.look(boards.iter().copied(), WINDOW.0, GLANCE), None);
        boards[0].set(Word::InFlight, 0);
        boards[1].set(Word::InFlight, 1);
        let window = windows.look(boards.iter().copied(), WINDOW.0, WINDOW.0).unwrap();
        assert_eq!((window.count, window.most, windows.threads()), (40, 2, 5));
        assert!((7_500_000..=10_000_000).contains(&window.octiles[3]), "{window:?}");
        assert_eq!(windows.look(boards.iter().copied(), WINDOW.0, 2 * WINDOW.0), None);
    }

    #[test]
    fn few_samples_make_a_window_long_and_none_make_an_empty_one() {
        let boards = [board(2)];
        let mut windows = Windows::new(boards.iter().copied(), 0);
        observe(&boards[0], 3, 1_000_000);
        assert_eq!(windows.look(boards.iter().copied(), WINDOW.0, WINDOW.1 - 1), None);
        assert_eq!(windows.look(boards.iter().copied(), WINDOW.0, WINDOW.1 + WINDOW.0).unwrap().count, 3);
        let empty = windows.look(boards.iter().copied(), WINDOW.0, 3 * WINDOW.1).unwrap();
        assert_eq!((empty.count, empty.octiles), (0, [0; 7]));
    }

    #[test]
    fn a_page_that_begins_anew_is_counted_from_nothing() {
        let boards = [board(2)];
        observe(&boards[0], 100, 1_000_000);
        let mut windows = Windows::new(boards.iter().copied(), 0);
        boards[0].begin(2);
        observe(&boards[0], 45, 1_000_000);
        assert_eq!(windows.look(boards.iter().copied(), WINDOW.0, WINDOW.0).unwrap().count, 45);
        // One that was not there at first is all new.
        let more = [boards[0], board(1)];
        observe(&more[1], 41, 1_000_000);
        assert_eq!(windows.look(more.iter().copied(), WINDOW.0, 2 * WINDOW.0).unwrap().count, 41);
    }

    #[test]
    fn the_page_of_a_killed_worker_runs_nothing() {
        let boards = [board(2), board(2)];
        boards[1].set(Word::Pid, u64::from(u32::MAX));
        boards[1].set(Word::InFlight, 2);
        let mut windows = Windows::new(boards.iter().copied(), 0);
        observe(&boards[0], 40, 1_000_000);
        let window = windows.look(boards.iter().copied(), WINDOW.0, WINDOW.0).unwrap();
        assert_eq!((window.most, windows.threads()), (0, 2));
    }
}
