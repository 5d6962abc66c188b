//! Which of a group's monitors keeps the limit. Any may, one does, and another goes on when it stops or sleeps.
//!
//! What the limiter knows is on the group page, so that a change of leader costs nothing. Two that believe to be it for a
//! moment do no harm: both write a limit that was right a window ago.

use super::windows::{GLANCE, Windows, is_alive};
use super::{Limiter, OCTILES, Saved, WINDOW};
use crate::scoreboard::Scoreboard;
use crate::scoreboard::group::{Group, GroupWord};

/// How long a leader may be silent; it works on the limit ten times as often.
const PATIENCE: u64 = 3 * WINDOW.0;

#[derive(Debug)]
pub struct Keeper {
    group: Group,
    pid: u64,
    seed: u64,
    /// While this is the leader.
    leads: Option<(Limiter, Windows)>,
    /// When there is something to do.
    due: u64,
}

impl Keeper {
    pub fn new(group: Group, seed: u64) -> Keeper {
        Keeper::of(group, seed, u64::from(std::process::id()))
    }

    fn of(group: Group, seed: u64, pid: u64) -> Keeper {
        Keeper { group, pid, seed, leads: None, due: 0 }
    }

    /// To be called at every tick of a monitor that is awake: nearly always one comparison. `pages` are the scoreboards of
    /// the group in the order of their indexes.
    #[inline]
    pub fn tick(&mut self, pages: impl Iterator<Item = Scoreboard> + Clone, now: u64) {
        if now >= self.due {
            self.work(pages, now);
        }
    }

    /// Lets another one lead at once.
    pub fn resign(&mut self) {
        self.leads = None;
        let _ = self.group.compare_exchange(GroupWord::LimitLeader, self.pid, 0);
    }

    fn work(&mut self, pages: impl Iterator<Item = Scoreboard> + Clone, now: u64) {
        if !self.is_leader(now) {
            self.leads = None;
            self.due = now + WINDOW.0;
            return;
        }
        self.due = now + GLANCE;
        self.group.set(GroupWord::LimitUpdated, now);
        let (limiter, windows) = self.leads.get_or_insert_with(|| {
            let windows = Windows::new(pages.clone(), now);
            (Limiter::resume(load(&self.group), windows.threads(), now, self.seed), windows)
        });
        let window = windows.look(pages, limiter.window_length(), now);
        if windows.threads() == 0 {
            // No worker serves, or none yet.
            return;
        }
        limiter.resize(windows.threads());
        if let Some(window) = window {
            limiter.window(&window, now);
            save(&self.group, &limiter.saved());
        }
        self.group.set(GroupWord::Limit, limiter.limit());
        self.group.set(GroupWord::MinLatency, limiter.min_latency());
    }

    fn is_leader(&self, now: u64) -> bool {
        let leader = self.group.get(GroupWord::LimitLeader);
        if leader == self.pid {
            return true;
        }
        let silent = now.saturating_sub(self.group.get(GroupWord::LimitUpdated)) > PATIENCE;
        let gone = leader == 0 || silent || !is_alive(leader);
        gone && self.group.compare_exchange(GroupWord::LimitLeader, leader, self.pid).is_ok()
    }
}

const MINIMUM: [GroupWord; OCTILES] = [
    GroupWord::Octile1,
    GroupWord::Octile2,
    GroupWord::Octile3,
    GroupWord::Octile4,
    GroupWord::Octile5,
    GroupWord::Octile6,
    GroupWord::Octile7,
];

fn load(group: &Group) -> Saved {
    Saved {
        limit: group.get(GroupWord::SavedLimit),
        minimum: MINIMUM.map(|word| group.get(word)),
        measured_at: group.get(GroupWord::MeasuredAt),
        probe_at: group.get(GroupWord::ProbeAt),
    }
}

fn save(group: &Group, saved: &Saved) {
    group.set(GroupWord::SavedLimit, saved.limit);
    MINIMUM.iter().zip(saved.minimum).for_each(|(word, octile)| group.set(*word, octile));
    group.set(GroupWord::MeasuredAt, saved.measured_at);
    group.set(GroupWord::ProbeAt, saved.probe_at);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scoreboard::{APP_TIME, State, Word};

    fn pages() -> Vec<Scoreboard> {
        let pages = vec![Scoreboard::private(8), Scoreboard::private(8)];
        for page in &pages {
            page.begin(8);
            page.state(State::Serving);
        }
        pages
    }

    /// Lets a keeper tick every millisecond while calls end; until when.
    fn run(keeper: &mut Keeper, pages: &[Scoreboard], from: u64, millis: u64) -> u64 {
        for step in 0..millis {
            for page in pages {
                page.set(Word::InFlight, 8);
                page.observe(APP_TIME, 20_000_000);
            }
            keeper.tick(pages.iter().copied(), from + step * 1_000_000);
        }
        from + millis * 1_000_000
    }

    fn leader(group: &Group) -> u64 {
        group.get(GroupWord::LimitLeader)
    }

    const GONE: u64 = u32::MAX as u64;

    #[test]
    fn one_of_two_keeps_the_limit_and_the_other_goes_on_where_it_stopped() {
        let (group, pages) = (Group::private(), pages());
        let me = u64::from(std::process::id());
        let parent = rustix::process::getppid().map_or(1, |pid| pid.as_raw_nonzero().get() as u64);
        let (mut first, mut second) = (Keeper::of(group, 1, me), Keeper::of(group, 2, parent));
        let mut now = run(&mut first, &pages, 0, 4000);
        assert_eq!((leader(&group), group.limit()), (me, Some(16)));
        let latency = group.get(GroupWord::MinLatency);
        assert!((16_000_000..25_000_000).contains(&latency), "{latency}");
        second.tick(pages.iter().copied(), now);
        assert_eq!(leader(&group), me);
        // The first one's worker has nothing to do and sleeps.
        now = run(&mut second, &pages, now, 500);
        assert_eq!((leader(&group), group.limit()), (parent, Some(16)));
        assert_eq!(group.get(GroupWord::MinLatency), latency);
        run(&mut first, &pages, now, 5);
        assert_eq!(leader(&group), parent);
        assert!(first.leads.is_none());
    }

    #[test]
    fn one_that_was_killed_or_resigned_is_replaced_at_once() {
        let (group, pages) = (Group::private(), pages());
        let me = u64::from(std::process::id());
        Keeper::of(group, 1, GONE).tick(pages.iter().copied(), 1);
        assert_eq!(leader(&group), GONE);
        let mut keeper = Keeper::of(group, 1, me);
        keeper.tick(pages.iter().copied(), 2);
        assert_eq!(leader(&group), me);
        keeper.resign();
        assert_eq!(leader(&group), 0);
        Keeper::of(group, 1, GONE).tick(pages.iter().copied(), 3);
        assert_eq!(leader(&group), GONE);
        keeper.resign();
        assert_eq!(leader(&group), GONE);
    }

    #[test]
    fn the_limit_grows_with_the_workers_that_serve() {
        let (group, pages) = (Group::private(), pages());
        pages.iter().for_each(|page| page.state(State::Booting));
        let mut keeper = Keeper::of(group, 1, u64::from(std::process::id()));
        keeper.tick(pages.iter().copied(), GLANCE);
        assert_eq!(group.limit(), None);
        pages[0].state(State::Serving);
        keeper.tick(pages.iter().copied(), 2 * GLANCE);
        assert_eq!(group.limit(), Some(3));
        pages[1].state(State::Serving);
        keeper.tick(pages.iter().copied(), 3 * GLANCE);
        assert_eq!(group.limit(), Some(4));
    }
}
