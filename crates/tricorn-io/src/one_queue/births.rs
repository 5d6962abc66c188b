//! In which worker a session begins: in the one that has the fewest, if that is idle.
//!
//! Sessions stay where they have begun, and their load with them. By themselves they would begin where their clients' connections are: all in
//! one worker if a front end keeps one connection.
//!
//! The table of sessions is counted once a second, if any begin. What each worker has learned since is in its scoreboard, and what was sent
//! to it may not be there yet: whichever is more.
use super::affinity::Affinity;
use super::siblings::Pages;
use crate::clock::SECOND;
use crate::scoreboard::{Scoreboard, State, Word};

#[derive(Debug, Default)]
pub struct Births {
    pages: Option<Pages>,
    counted: u64,
    workers: Vec<Sessions>,
}

/// Sessions of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sessions {
    mailbox: u16,
    pid: u32,
    /// When they were counted.
    count: u64,
    /// What its scoreboard said then.
    learned: u64,
    /// We have had so many begin there since.
    given: u64,
}

impl Sessions {
    fn of(pages: &[Scoreboard], (mailbox, pid, count): (u16, u32, usize)) -> Sessions {
        let learned = page_of(pages, pid).map_or(0, |page| page.get(Word::SessionsLearned));
        Sessions { mailbox, pid, count: count as u64, learned, given: 0 }
    }

    fn now(self, page: &Scoreboard) -> u64 {
        self.count + page.get(Word::SessionsLearned).saturating_sub(self.learned).max(self.given)
    }
}

impl Births {
    /// There are other workers, with these pages.
    pub fn join(&mut self, pages: Pages) {
        self.pages = Some(pages);
    }

    /// The mailbox of the worker in which a session that is about to begin should do so; `None`: here. `is_lent`: the connection stays
    /// here, and requests of the session that come by it would be lent.
    pub fn place(&mut self, affinity: &Affinity, is_lent: bool, now: u64) -> Option<u16> {
        let pages = self.pages.clone()?;
        if self.counted == 0 || now.saturating_sub(self.counted) >= SECOND {
            self.counted = now;
            self.workers =
                affinity.recent_counts().into_iter().map(|counted| Sessions::of(pages.used(), counted)).collect();
        }
        self.meet(affinity.owners());
        self.choose(pages.used(), affinity.own_mailbox(), is_lent)
    }

    /// Workers may have begun and ended since the table was counted.
    fn meet(&mut self, owners: impl Iterator<Item = (u16, u32)> + Clone) {
        self.workers.retain(|worker| owners.clone().any(|owner| owner == (worker.mailbox, worker.pid)));
        for (mailbox, pid) in owners {
            if !self.workers.iter().any(|worker| worker.mailbox == mailbox) {
                self.workers.push(Sessions { mailbox, pid, count: 0, learned: 0, given: 0 });
            }
        }
    }

    /// A session begins here that was sent here for that.
    pub fn begins_here(&mut self, affinity: &Affinity) {
        self.give(affinity.own_mailbox());
    }

    fn give(&mut self, mailbox: u16) {
        if let Some(worker) = self.workers.iter_mut().find(|worker| worker.mailbox == mailbox) {
            worker.given += 1;
        }
    }

    fn choose(&mut self, pages: &[Scoreboard], own: u16, is_lent: bool) -> Option<u16> {
        let now = |worker: &Sessions| {
            let page = page_of(pages, worker.pid)?;
            Some((worker.now(page), page))
        };
        let (ours, _) = self.workers.iter().find(|worker| worker.mailbox == own).and_then(now)?;
        let others = self.workers.iter().filter(|worker| worker.mailbox != own);
        let idle = others.filter_map(|worker| {
            let (sessions, page) = now(worker)?;
            (page.get(Word::Free) > 0).then_some((sessions, worker.mailbox))
        });
        let fewest = idle.min().filter(|(sessions, _)| ours > sessions + tolerance(*sessions, is_lent));
        self.give(fewest.map_or(own, |(_, mailbox)| mailbox));
        fewest.map(|(_, mailbox)| mailbox)
    }
}

/// So many sessions more than the fewest are none too many. To send a request to another worker costs as much as a small request, and a
/// loan costs that each time.
fn tolerance(fewest: u64, is_lent: bool) -> u64 {
    if is_lent { 8 + fewest } else { 1 + fewest / 8 }
}

fn page_of(pages: &[Scoreboard], pid: u32) -> Option<&Scoreboard> {
    pages.iter().find(|page| page.get(Word::Pid) == u64::from(pid) && page.get(Word::State) == State::Serving as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Workers that serve, each with a free thread and so many sessions. The first is ours.
    fn with(counts: &[usize]) -> (Births, Vec<Scoreboard>) {
        let pages: Vec<Scoreboard> = counts.iter().map(|_| Scoreboard::private(1)).collect();
        for (index, page) in pages.iter().enumerate() {
            page.set(Word::Pid, 100 + index as u64);
            page.set(Word::Free, 1);
            page.state(State::Serving);
        }
        let of = |(index, count): (usize, &usize)| Sessions::of(&pages, (index as u16, 100 + index as u32, *count));
        let workers = counts.iter().enumerate().map(of).collect();
        (Births { pages: None, counted: 1, workers }, pages)
    }

    #[test]
    fn sessions_begin_where_the_fewest_are() {
        let (mut births, pages) = with(&[9, 5, 2, 7]);
        let mut begun = [0; 4];
        for _ in 0..17 {
            let place = births.choose(&pages, 0, false).unwrap_or(0);
            begun[usize::from(place)] += 1;
            pages[usize::from(place)].add(Word::SessionsLearned, 1);
        }
        assert_eq!(begun, [3, 5, 7, 2], "they come to 12, 10, 9 and 9");
    }

    #[test]
    fn what_was_sent_counts_before_it_has_begun_and_what_others_have_sent_when_it_has() {
        let (mut births, pages) = with(&[5, 0, 0]);
        assert_eq!([(); 4].map(|()| births.choose(&pages, 0, false)), [Some(1), Some(2), Some(1), Some(2)]);
        pages[1].add(Word::SessionsLearned, 4);
        assert_eq!([(); 3].map(|()| births.choose(&pages, 0, false)), [Some(2), Some(2), None]);
    }

    #[test]
    fn workers_that_have_begun_and_ended_since_the_table_was_counted_are_known() {
        let (mut births, pages) = with(&[5, 5, 5]);
        pages[1].set(Word::Pid, 201);
        births.meet([(0, 100), (1, 201), (2, 102)].into_iter());
        assert_eq!([(); 2].map(|()| births.choose(&pages, 0, false)), [Some(1); 2]);
        births.meet([(0, 100), (2, 102)].into_iter());
        assert_eq!(births.choose(&pages, 0, false), None);
    }

    #[test]
    fn no_session_is_sent_to_a_worker_that_is_busy_or_leaves_or_for_little() {
        let (mut births, pages) = with(&[9, 0, 0]);
        pages[1].set(Word::Free, 0);
        pages[2].state(State::Draining);
        assert_eq!(births.choose(&pages, 0, false), None);
        let (mut births, pages) = with(&[1, 0]);
        assert_eq!(births.choose(&pages, 0, false), None, "one more is nothing");
        let (mut births, pages) = with(&[90, 80]);
        assert_eq!(births.choose(&pages, 0, false), None, "an eighth neither");
        assert_eq!(births.choose(&pages, 7, false), None, "this worker has no mailbox");
        let (mut births, pages) = with(&[9, 0]);
        assert_eq!([(); 2].map(|()| births.choose(&pages, 0, true)), [Some(1), None], "each request would be lent");
    }
}
