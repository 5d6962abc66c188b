//! The other workers of the group, as their scoreboards show them.
use super::affinity::Affinity;
use crate::scoreboard::group::{Group, GroupWord};
use crate::scoreboard::ledger::Ledger;
use crate::scoreboard::routes::{Routes, WorkerRoutes};
use crate::scoreboard::{Scoreboard, State, Word};
use crate::sys::channel::Channel;
use std::sync::Arc;

/// What one worker holds in common with all.
#[derive(Debug)]
pub struct Siblings {
    pub group: Group,
    /// `None`: nothing is handed over.
    pub channel: Option<Channel>,
    pages: Pages,
    own: usize,
    /// With sessions that stay with their workers: the table, and this worker's own mailbox.
    pub affinity: Option<(Arc<Affinity>, Channel)>,
    /// What its routes cost, and this worker's part of that.
    pub routes: Option<(Routes, WorkerRoutes)>,
}

/// The scoreboards of all workers.
#[derive(Debug, Clone)]
pub struct Pages {
    group: Group,
    all: Arc<[Scoreboard]>,
    ledger: Option<Ledger>,
    routes: Option<Routes>,
}

impl Pages {
    /// Those that workers use or have used.
    pub fn used(&self) -> &[Scoreboard] {
        let used = self.group.get(GroupWord::Pages) as usize;
        &self.all[..used.min(self.all.len())]
    }

    pub fn group(&self) -> Group {
        self.group
    }

    /// What workers that are gone have counted.
    pub fn ledger(&self) -> Option<Ledger> {
        self.ledger
    }

    /// What the routes of the application cost.
    pub fn routes(&self) -> Option<Routes> {
        self.routes
    }

    /// A gauge, summed over the workers that serve, and how many they are.
    pub fn serving(&self, gauge: Word) -> (u64, u64) {
        let serving = self.used().iter().filter(|page| page.get(Word::State) == State::Serving as u64);
        serving.fold((0, 0), |(sum, workers), page| (sum + page.get(gauge), workers + 1))
    }

    /// A gauge, summed over all workers that are not gone.
    pub fn sum(&self, gauge: Word) -> u64 {
        let is_gone = |page: &&Scoreboard| page.get(Word::State) == State::Stopped as u64;
        self.used().iter().filter(|page| !is_gone(page)).map(|page| page.get(gauge)).sum()
    }
}

/// The siblings at one moment; our own worker is not among them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LoadSnapshot {
    /// App threads that could begin a request now.
    pub idle: u64,
    /// Workers that serve and are not about to leave.
    pub serving: u64,
    /// Since when the longest waiting request waits, in nanoseconds; `None`: nothing waits.
    pub oldest: Option<u64>,
    /// How many of the serving workers come before ours.
    pub rank: u64,
}

impl Siblings {
    /// `pages[own]` is this worker's page.
    pub fn new(group: Group, channel: Option<Channel>, pages: Vec<Scoreboard>, own: usize) -> Siblings {
        let used = own as u64 + 1;
        let mut before = group.get(GroupWord::Pages);
        while before < used {
            match group.compare_exchange(GroupWord::Pages, before, used) {
                Ok(_) => break,
                Err(other) => before = other,
            }
        }
        Siblings {
            group,
            channel,
            pages: Pages { group, all: pages.into(), ledger: None, routes: None },
            own,
            affinity: None,
            routes: None,
        }
    }

    /// With what workers that are gone have counted.
    pub fn with_ledger(mut self, ledger: Ledger) -> Siblings {
        self.pages.ledger = Some(ledger);
        self
    }

    /// With what routes cost. `slot`: this worker's, from 1 on.
    pub fn with_routes(mut self, routes: Routes, slot: u64) -> Siblings {
        self.pages.routes = Some(routes);
        self.routes = routes.of_worker(slot).map(|own| (routes, own));
        self
    }

    /// The pages that workers use or have used, ours among them.
    pub fn pages(&self) -> &[Scoreboard] {
        self.pages.used()
    }

    /// The same, to be kept.
    pub fn all_pages(&self) -> Pages {
        self.pages.clone()
    }

    pub fn load(&self) -> LoadSnapshot {
        let mut load = LoadSnapshot::default();
        for (index, page) in self.pages().iter().enumerate() {
            if index == self.own || page.get(Word::State) != State::Serving as u64 {
                continue;
            }
            load.serving += 1;
            load.rank += u64::from(index < self.own);
            load.idle += page.get(Word::Free);
            let oldest = page.get(Word::Oldest);
            if oldest > 0 {
                load.oldest = Some(load.oldest.map_or(oldest, |other| other.min(oldest)));
            }
        }
        load
    }

    /// How many messages lie in the channel. A worker that was killed between two steps leaves the count too high; it is
    /// put right by the worker that finds the channel empty.
    pub fn in_channel(&self, channel: &Channel) -> u64 {
        if !channel.holds_any() {
            return 0;
        }
        let (taken, sent) = (self.group.get(GroupWord::Taken), self.group.get(GroupWord::Sent));
        sent.saturating_sub(taken).max(1)
    }

    /// One message more was sent, or taken.
    pub fn count(&self, word: GroupWord) {
        self.group.fetch_add(word, 1);
    }

    /// Whether it is worth a system call to look into the channel.
    #[inline]
    pub fn is_something_sent(&self) -> bool {
        self.group.get(GroupWord::Sent) != self.group.get(GroupWord::Taken)
    }

    /// The channel was found empty after `sent` messages.
    pub fn is_empty_after(&self, channel: &Channel, sent: u64) {
        let taken = self.group.get(GroupWord::Taken);
        if taken != sent && !channel.holds_any() {
            let _ = self.group.compare_exchange(GroupWord::Taken, taken, sent);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_siblings_that_serve_are_counted() {
        let pages: Vec<Scoreboard> = (0..5).map(|_| Scoreboard::private(1)).collect();
        let siblings = Siblings::new(Group::private(), None, pages.clone(), 1);
        assert_eq!(siblings.load(), LoadSnapshot::default());
        for (page, state) in pages.iter().zip([State::Serving, State::Serving, State::Draining, State::Serving]) {
            page.state(state);
            page.set(Word::Free, 1);
            page.set(Word::Oldest, 7);
        }
        pages[3].set(Word::Oldest, 5);
        assert_eq!(siblings.load().serving, 1, "no worker has said yet that the other pages are in use");
        let other = Siblings::new(siblings.group, None, pages, 3);
        assert_eq!(siblings.load(), LoadSnapshot { idle: 2, serving: 2, oldest: Some(5), rank: 1 });
        assert_eq!(other.load(), LoadSnapshot { idle: 2, serving: 2, oldest: Some(7), rank: 2 });
    }

    #[test]
    fn a_gauge_of_all_workers_leaves_out_those_that_are_gone() {
        let pages: Vec<Scoreboard> = (0..4).map(|_| Scoreboard::private(1)).collect();
        for (page, state) in pages.iter().zip([State::Serving, State::Draining, State::Stopped, State::Serving]) {
            page.state(state);
            page.set(Word::DiskBytes, 10);
        }
        let siblings = Siblings::new(Group::private(), None, pages, 2);
        assert_eq!(siblings.all_pages().sum(Word::DiskBytes), 20, "the last page is not in use yet");
    }
}
