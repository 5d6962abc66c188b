//! What workers remember together of the load: words of the group's page.
//!
//! The worker that takes the turn of a second writes; all read. A worker that is killed in between leaves the last sample out.
use crate::scoreboard::group::{Group, GroupWord, LOAD_MINUTES, LOAD_SAMPLE, LOAD_SAMPLES};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use tricorn_sys::clock::SECOND;

/// What all workers had come to at a moment: sums of which differences count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Sample {
    /// Monotonic nanoseconds.
    pub time: u64,
    pub arrived: u64,
    /// Calls that ended.
    pub calls: u64,
    /// Nanoseconds for which workers were busy, and for which they could have been.
    pub busy: u64,
    pub room: u64,
}

/// Calls, and the nanoseconds that they took, less the longer ago.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Recent {
    pub calls: f64,
    pub busy: f64,
}

/// After this time a call counts for a third (1/e).
const FADING: f64 = 30.0 * SECOND as f64;

#[derive(Debug, Clone, Copy)]
pub(super) struct Memory(pub Group);

impl Memory {
    /// Takes the turn if the last sample is a second old: how old; 0: it is the first one.
    pub fn takes_turn(self, now: u64) -> Option<u64> {
        let last = self.0.get(GroupWord::LoadTurn);
        let gap = now.checked_sub(last).filter(|gap| last == 0 || *gap >= SECOND)?;
        self.0.compare_exchange(GroupWord::LoadTurn, last, now).ok()?;
        Some(if last == 0 { 0 } else { gap })
    }

    /// Adds the sample of the turn, and what it says of calls lately. A worker that was stopped meanwhile comes too late.
    pub fn add(self, sample: Sample) {
        let last = self.samples().last().copied();
        if last.is_some_and(|last| last.time >= sample.time) {
            return;
        }
        if let Some(before) = last {
            let Recent { calls, busy } = self.recent();
            let rest = (-(sample.time.saturating_sub(before.time) as f64) / FADING).exp();
            let more = |now: u64, then: u64| now.saturating_sub(then) as f64;
            let calls = calls * rest + more(sample.calls, before.calls);
            let busy = busy * rest + more(sample.busy, before.busy);
            self.0.set(GroupWord::LoadRecentCalls, calls.to_bits());
            self.0.set(GroupWord::LoadRecentBusy, busy.to_bits());
        }
        let written = self.0.get(GroupWord::LoadSamples);
        let place = written as usize % LOAD_SAMPLES * LOAD_SAMPLE;
        let Sample { time, arrived, calls, busy, room } = sample;
        for (index, value) in [time, arrived, calls, busy, room].into_iter().enumerate() {
            self.0.word(GroupWord::LoadRing, place + index).store(value, Relaxed);
        }
        self.0.word(GroupWord::LoadSamples, 0).store(written.wrapping_add(1), Release);
        self.0.raise_to(GroupWord::LoadBusy, busy);
    }

    /// The last samples, the oldest first; without the one that the next overwrites.
    pub fn samples(self) -> Vec<Sample> {
        let written = self.0.word(GroupWord::LoadSamples, 0).load(Acquire);
        let kept = written.min(LOAD_SAMPLES as u64 - 1);
        let sample = |index: u64| {
            let place = index as usize % LOAD_SAMPLES * LOAD_SAMPLE;
            let word = |word| self.0.word(GroupWord::LoadRing, place + word).load(Relaxed);
            Sample { time: word(0), arrived: word(1), calls: word(2), busy: word(3), room: word(4) }
        };
        (written - kept..written).map(sample).collect()
    }

    pub fn recent(self) -> Recent {
        let word = |word| f64::from_bits(self.0.get(word));
        Recent { calls: word(GroupWord::LoadRecentCalls), busy: word(GroupWord::LoadRecentBusy) }
    }

    /// So many requests have come, as far as is seen now: how many that are at least. A request on its way from one word to another
    /// may be missed.
    pub fn arrived(self, seen: u64) -> u64 {
        self.0.raise_to(GroupWord::LoadArrived, seen)
    }

    /// Nanoseconds for which workers were busy, by the last sample.
    pub fn busy(self) -> u64 {
        self.0.get(GroupWord::LoadBusy)
    }

    /// Too much waits, or does not: for how long that was seen.
    pub fn note_queue(self, is_over: bool, now: u64) -> u64 {
        if !is_over {
            self.0.set(GroupWord::LoadOverSince, 0);
            return 0;
        }
        let since = match self.0.compare_exchange(GroupWord::LoadOverSince, 0, now) {
            Ok(_) => now,
            Err(since) => since,
        };
        now.saturating_sub(since)
    }

    /// The weight that is told, in points.
    pub fn weight(self) -> u64 {
        match self.0.get(GroupWord::LoadWeight) {
            0 => 100,
            thousandths => thousandths.div_ceil(1000),
        }
    }

    /// The speed of this minute, if it is its best one.
    pub fn note_speed(self, speed: f64, now: u64) {
        let minute = minute(now);
        let word = self.0.word(GroupWord::LoadBest, minute as usize % LOAD_MINUTES);
        let known = word.load(Relaxed);
        if known >> 32 != u64::from(minute) || f64::from(f32::from_bits(known as u32)) < speed {
            word.store(u64::from(minute) << 32 | u64::from((speed as f32).to_bits()), Relaxed);
        }
    }

    /// The best speed of the last hour; `None`: none was noted.
    pub fn best_speed(self, now: u64) -> Option<f64> {
        let oldest = u64::from(minute(now)).saturating_sub(LOAD_MINUTES as u64 - 1);
        let words = (0..LOAD_MINUTES).map(|index| self.0.word(GroupWord::LoadBest, index).load(Relaxed));
        let speeds =
            words.filter(|word| *word != 0 && word >> 32 >= oldest).map(|word| f64::from(f32::from_bits(word as u32)));
        speeds.filter(|speed| speed.is_finite()).reduce(f64::max)
    }
}

/// Minutes since the machine began, and one: 0 is none.
fn minute(now: u64) -> u32 {
    (now / (60 * SECOND)) as u32 + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_question_has_the_turn() {
        let memory = Memory(Group::private());
        assert_eq!((memory.takes_turn(5), memory.takes_turn(5)), (Some(0), None));
        assert_eq!((memory.takes_turn(4), memory.takes_turn(SECOND + 4)), (None, None));
        assert_eq!((memory.takes_turn(SECOND + 6), memory.takes_turn(SECOND + 6)), (Some(SECOND + 1), None));
    }

    #[test]
    fn the_last_samples_are_kept() {
        let memory = Memory(Group::private());
        assert_eq!(memory.samples(), []);
        for time in 1..30 {
            memory.add(Sample { time, arrived: 2 * time, calls: 3, busy: 4, room: 5 });
            let times: Vec<_> = memory.samples().iter().map(|sample| sample.time).collect();
            assert!(times.iter().copied().eq(time.saturating_sub(LOAD_SAMPLES as u64 - 2).max(1)..=time), "{times:?}");
        }
        assert_eq!(memory.samples()[0], Sample { time: 23, arrived: 46, calls: 3, busy: 4, room: 5 });
    }

    #[test]
    fn a_sample_that_comes_late_is_left_out() {
        let memory = Memory(Group::private());
        let sample = |time, busy| Sample { time, busy, ..Sample::default() };
        memory.add(sample(5, 50));
        memory.add(sample(4, 40));
        memory.add(sample(5, 60));
        assert_eq!((memory.samples(), memory.busy()), (vec![sample(5, 50)], 50));
    }

    #[test]
    fn a_count_of_samples_that_is_none_is_read() {
        let group = Group::private();
        group.set(GroupWord::LoadSamples, u64::MAX);
        assert_eq!(Memory(group).samples().len(), LOAD_SAMPLES - 1);
    }

    #[test]
    fn the_best_speed_is_that_of_the_last_hour() {
        let (memory, minute) = (Memory(Group::private()), 60 * SECOND);
        assert_eq!(memory.best_speed(0), None);
        memory.note_speed(80.0, 0);
        memory.note_speed(70.0, SECOND);
        memory.note_speed(50.0, 30 * minute);
        assert_eq!(memory.best_speed(59 * minute), Some(80.0));
        assert_eq!(memory.best_speed(60 * minute), Some(50.0));
        memory.note_speed(20.0, 60 * minute);
        assert_eq!(memory.best_speed(89 * minute), Some(50.0));
        assert_eq!((memory.best_speed(90 * minute), memory.best_speed(120 * minute)), (Some(20.0), None));
    }

    #[test]
    fn calls_are_forgotten_by_and_by() {
        let memory = Memory(Group::private());
        memory.add(Sample { time: 1, ..Sample::default() });
        memory.add(Sample { time: 2, calls: 10, busy: 1000, ..Sample::default() });
        memory.add(Sample { time: 2 + 30 * SECOND, calls: 10, busy: 1000, ..Sample::default() });
        let Recent { calls, busy } = memory.recent();
        assert!((3.6..3.8).contains(&calls) && (360.0..380.0).contains(&busy), "{calls} {busy}");
    }
}
