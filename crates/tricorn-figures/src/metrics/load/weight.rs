//! The weight: what share of requests a balancer should send here, of 100 when this host is at its best.
//!
//! ```text
//!   speed / best speed of the last hour ──▶ 10 … 100 ──▶ ten points a second ──▶ overloaded: half ──▶ ten points a second ──▶ told
//! ```
//!
//! It follows the speed, not what is free: what is free has changed when the balancer is told, and all balancers would send to the
//! same host at once. For the same reason a queue lowers nothing, unless it is half as long as it may be.
use super::figures::Figures;
use super::memory::Memory;
use crate::scoreboard::group::GroupWord;
use tricorn_sys::clock::SECOND;

/// What the weight of a turn follows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    pub figures: Figures,
    pub overloaded: bool,
    /// Nanoseconds since the last turn.
    pub gap: u64,
    pub now: u64,
}

/// Thousandths of a point.
const POINT: f64 = 1000.0;
const MOST: f64 = 100.0 * POINT;
const LEAST: f64 = 10.0 * POINT;
/// Most that it moves in a second; and how fast it comes back when nothing tells the speed.
const STEP: f64 = 10.0 * POINT;
const RETURN: f64 = POINT;
/// Below this the speed is not a measure for others, and with fewer calls it is one of chance.
const BUSY: f64 = 0.3;
const CALLS: f64 = 30.0;
/// With fewer calls there is no speed at all.
const FEW: f64 = 8.0;

impl Pace {
    /// Moves the weights that are kept. It is for the worker that has the turn.
    pub fn keep(&self, memory: &Memory) {
        let Figures { utilisation, calls, speed, .. } = self.figures;
        if utilisation >= BUSY && calls >= CALLS {
            memory.note_speed(speed, self.now);
        }
        let known = |word| match memory.0.get(word) {
            0 => MOST,
            thousandths => thousandths as f64,
        };
        let seconds = self.gap as f64 / SECOND as f64;
        let (goal, step) = match memory.best_speed(self.now).filter(|best| *best > 0.0) {
            Some(best) if calls >= FEW && speed > 0.0 => ((speed / best * MOST).clamp(LEAST, MOST), STEP),
            _ => (MOST, RETURN),
        };
        let by_speed = toward(known(GroupWord::LoadSpeedWeight), goal, step * seconds);
        let goal = if self.overloaded { by_speed / 2.0 } else { by_speed };
        let told = toward(known(GroupWord::LoadWeight), goal, STEP * seconds);
        memory.0.set(GroupWord::LoadSpeedWeight, by_speed as u64);
        memory.0.set(GroupWord::LoadWeight, told as u64);
    }
}

fn toward(from: f64, to: f64, most: f64) -> f64 {
    from + (to - from).clamp(-most, most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scoreboard::group::Group;

    fn figures(speed: f64, utilisation: f64, calls: f64) -> Figures {
        Figures { window: 3.0, utilisation, rps: speed * utilisation, speed, demand: 0.0, calls }
    }

    /// Turns of a second each; the weights that are told.
    fn weights(memory: &Memory, turns: usize, figures: Figures) -> Vec<u64> {
        let turn = |_| {
            Pace { figures, overloaded: false, gap: SECOND, now: 7 * SECOND }.keep(memory);
            memory.weight()
        };
        (0..turns).map(turn).collect()
    }

    #[test]
    fn the_best_is_that_of_a_busy_host_with_many_calls() {
        let memory = Memory(Group::private());
        assert_eq!(weights(&memory, 2, figures(900.0, 0.29, 500.0)), [100, 100]);
        assert_eq!(weights(&memory, 2, figures(900.0, 0.9, 29.0)), [100, 100]);
        assert_eq!(memory.best_speed(7 * SECOND), None);
        weights(&memory, 1, figures(100.0, 0.3, 30.0));
        assert_eq!(memory.best_speed(7 * SECOND), Some(100.0));
    }

    #[test]
    fn it_falls_and_rises_ten_points_a_turn_and_not_below_ten() {
        let memory = Memory(Group::private());
        weights(&memory, 1, figures(100.0, 0.5, 300.0));
        assert_eq!(weights(&memory, 4, figures(70.0, 0.5, 300.0)), [90, 80, 70, 70]);
        let slow = weights(&memory, 9, figures(1.0, 0.9, 30.0));
        assert_eq!((slow[0], slow[5], slow[8]), (60, 10, 10));
        // Little is sent to a slow host: it is slow nevertheless.
        assert_eq!(weights(&memory, 3, figures(5.0, 0.05, 8.0)), [10, 10, 10]);
        assert_eq!(weights(&memory, 2, figures(100.0, 0.5, 300.0)), [20, 30]);
    }

    #[test]
    fn without_calls_it_comes_back_slowly() {
        let memory = Memory(Group::private());
        weights(&memory, 1, figures(100.0, 0.5, 300.0));
        weights(&memory, 5, figures(50.0, 0.5, 300.0));
        assert_eq!(weights(&memory, 3, figures(0.0, 0.0, 0.0)), [51, 52, 53]);
    }

    #[test]
    fn a_long_time_without_a_turn_is_caught_up_with() {
        let memory = Memory(Group::private());
        weights(&memory, 1, figures(100.0, 0.5, 300.0));
        Pace { figures: figures(40.0, 0.5, 300.0), overloaded: false, gap: 30 * SECOND, now: 40 * SECOND }
            .keep(&memory);
        assert_eq!(memory.weight(), 40);
        Pace { figures: figures(40.0, 0.5, 300.0), overloaded: true, gap: 30 * SECOND, now: 70 * SECOND }.keep(&memory);
        assert_eq!(memory.weight(), 20);
    }
}
