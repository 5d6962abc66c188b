//! Where answers about the workers come from: their pages, what the application has counted, the load.
use super::load_desk::LoadDesk;
use super::scrapes::Scrapes;
use crate::metrics::load::Report;
use crate::one_queue::siblings::Pages;
use crate::scoreboard::Scoreboard;

#[derive(Debug)]
pub(super) struct Telemetry {
    own: Scoreboard,
    /// Those of all workers; `None`: the worker is alone.
    pages: Option<Pages>,
    pub scrapes: Scrapes,
    load: LoadDesk,
}

impl Telemetry {
    pub fn new(own: Scoreboard, scrapes: Scrapes, load: LoadDesk) -> Telemetry {
        Telemetry { own, pages: None, scrapes, load }
    }

    /// There are other workers, with these pages.
    pub fn join(&mut self, pages: Pages, now: u64) {
        self.pages = Some(pages);
        // Who asks first is told of the time since then.
        self.report(now);
    }

    pub fn own(&self) -> Scoreboard {
        self.own
    }

    pub fn pages(&self) -> Option<&Pages> {
        self.pages.as_ref()
    }

    /// The load of all workers; of this one if it is alone.
    pub fn report(&self, now: u64) -> Report {
        self.load.report(self.pages.as_ref(), self.own, now)
    }

    /// Makes anew, once a second, what responses tell of the load.
    #[inline]
    pub fn refresh_load(&mut self, now: u64) {
        if self.load.is_stale(now) {
            let report = self.report(now);
            self.load.tell(&report, now);
        }
    }
}
