//! What samples say: how much was used, how fast it went, how much was asked for.
use super::memory::{Recent, Sample};
use tricorn_sys::clock::SECOND;

/// What is known of the load at a moment.
#[derive(Debug, Clone, Copy)]
pub struct Report {
    /// Requests that can keep the workers busy at once: threads, or event loops.
    pub capacity: u64,
    /// Requests that can be with the application at once.
    pub concurrency: u64,
    pub running: u64,
    pub waiting: u64,
    pub figures: Figures,
    /// What share of requests this host should get, of 100 at its best.
    pub weight: u64,
    /// More waits than should, and has for a second.
    pub overloaded: bool,
    /// Requests that ever came, and nanoseconds for which workers were ever busy.
    pub arrived: u64,
    pub busy: u64,
}

/// Of the last seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Figures {
    /// How many seconds; 0: nothing was asked before.
    pub window: f64,
    /// The share of the workers' time for which they were busy: 0 to 1.
    pub utilisation: f64,
    /// Requests that were completed, per second; and what that would be with all of the time in use.
    pub rps: f64,
    pub speed: f64,
    /// What came, of what can be served: may be more than 1.
    pub demand: f64,
    /// Calls that ended.
    pub calls: f64,
}

/// How many seconds there should be, in nanoseconds, less what a question may be early.
const WINDOW: u64 = 3 * SECOND - SECOND / 20;
/// With so many calls their mean is that of the time; with fewer, that of calls lately.
const ENOUGH: f64 = 8.0;
/// Fewer than that says nothing of calls lately.
const LEAST: f64 = 0.5;

impl Figures {
    /// From the last sample back to the first one that is old enough.
    pub(super) fn of(samples: &[Sample], recent: Recent) -> Figures {
        let Some((last, before)) = samples.split_last() else { return Figures::default() };
        let is_old = |sample: &&Sample| last.time.saturating_sub(sample.time) >= WINDOW;
        let Some(first) = before.iter().rev().find(is_old).or(before.first()) else { return Figures::default() };
        let time = last.time.saturating_sub(first.time) as f64;
        if time <= 0.0 {
            return Figures::default();
        }
        let more = |now: u64, then: u64| now.saturating_sub(then) as f64;
        let (busy, room) = (more(last.busy, first.busy), more(last.room, first.room));
        let (arrived, calls) = (more(last.arrived, first.arrived), more(last.calls, first.calls));
        let utilisation = if room > 0.0 { (busy / room).min(1.0) } else { 0.0 };
        let rps = calls * SECOND as f64 / time;
        let cost = match (calls, recent.calls) {
            (ENOUGH.., _) => Some(busy / calls),
            (_, LEAST..) => Some(recent.busy / recent.calls),
            _ => None,
        };
        let demand = cost.filter(|_| room > 0.0).map_or(utilisation, |cost| arrived * cost / room);
        let speed = if utilisation > 0.0 { rps / utilisation } else { 0.0 };
        Figures { window: time / SECOND as f64, utilisation, rps, speed, demand, calls }
    }

    /// Without any time that was looked at: what runs now.
    pub(super) fn or_at_once(self, running: u64, capacity: u64) -> Figures {
        if self.window > 0.0 || capacity == 0 {
            return self;
        }
        let share = (running as f64 / capacity as f64).min(1.0);
        Figures { utilisation: share, demand: share, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(seconds: u64, arrived: u64, calls: u64, busy: u64) -> Sample {
        Sample { time: seconds * SECOND, arrived, calls, busy: busy * SECOND, room: seconds * 4 * SECOND }
    }

    #[test]
    fn the_window_is_three_seconds_if_there_are_so_many() {
        let samples: Vec<_> = (10..16).map(|second| sample(second, 0, 0, 0)).collect();
        let window = |samples: &[Sample]| Figures::of(samples, Recent::default()).window;
        assert_eq!([0, 1, 2, 3, 4, 6].map(|count| window(&samples[..count])), [0.0, 0.0, 1.0, 2.0, 3.0, 3.0]);
        assert_eq!(window(&[samples[0], samples[2], samples[4]]), 4.0, "a question every other second");
    }

    #[test]
    fn few_calls_cost_what_calls_have_cost_lately() {
        let samples = [sample(10, 0, 0, 0), sample(13, 6, 1, 12)];
        let of = |recent| Figures::of(&samples, recent);
        assert_eq!(of(Recent::default()).demand, 1.0, "nothing is known: what is in use");
        assert_eq!(of(Recent { calls: 4.0, busy: 40.0 * SECOND as f64 }).demand, 5.0);
        let many = Figures::of(&[sample(10, 0, 0, 0), sample(13, 24, 12, 12)], Recent { calls: 9.0, busy: 0.0 });
        assert_eq!((many.demand, many.utilisation, many.rps, many.speed), (2.0, 1.0, 4.0, 4.0));
    }

    #[test]
    fn no_time_and_no_room_are_no_load() {
        let same = [sample(10, 5, 5, 5); 2];
        assert_eq!(Figures::of(&same, Recent::default()), Figures::default());
        let mut later = sample(14, 9, 9, 9);
        later.room = same[0].room;
        let figures = Figures::of(&[same[0], later], Recent { calls: 9.0, busy: 9e9 });
        assert_eq!((figures.utilisation, figures.demand, figures.rps), (0.0, 0.0, 1.0));
        assert_eq!(Figures::default().or_at_once(9, 0), Figures::default());
    }
}
