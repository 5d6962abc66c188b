//! Jobs that are done without the baton (`reactor/jobs.rs`): by app threads that are idle, by a hub that is, or by the monitor.
use super::baton::BatonGuard;
use super::shared::Shared;
use crate::clock::{self, MILLI};

/// For how long the monitor does jobs before it looks around again.
const SLICE: u64 = 4 * MILLI;

impl Shared {
    /// Runs one job, for a hub.
    pub fn run_job(&self) {
        self.work_off(self.baton.take());
    }

    /// Does a job: the baton is let go of meanwhile. Whether something is to be read by that.
    fn work_off<'s>(&'s self, mut core: BatonGuard<'s>) -> (BatonGuard<'s>, bool) {
        let Some(mut job) = core.reactor.next_job() else { return (core, false) };
        drop(core);
        job.run();
        let mut core = self.baton.take();
        let has_more = core.reactor.job_is_done(job);
        (core, has_more)
    }

    /// An app thread that is about to wait does jobs until a request is ready, or there are none left. Requests that have come meanwhile
    /// are looked for after each.
    pub fn work_off_while_idle<'s>(&'s self, mut core: BatonGuard<'s>) {
        while core.reactor.has_job() {
            (core, _) = self.work_off(core);
            // Another thread may wait for events, and an unfinished batch is never replaced.
            if core.polling.is_none() && core.reactor.events().is_empty() && self.see_events(&mut core).is_err() {
                self.end_now();
                return;
            }
            if core.reactor.has_work() || core.reactor.is_woken() || self.life.is_stopping() {
                return;
            }
        }
    }

    /// The monitor does jobs, where no app thread does: under a hub, while it covers, and when app threads have had no time for them
    /// for longer than `patience`. Whether some are left.
    pub fn work_off_in_place(&self, patience: u64) -> bool {
        let (begun, mut has_more) = (clock::now(), false);
        let mut core = self.baton.take();
        let is_left = loop {
            let now = clock::now();
            let waited = core.reactor.job_waited(now);
            if waited <= patience {
                break false;
            }
            if now.saturating_sub(begun) > SLICE {
                break true;
            }
            let more;
            (core, more) = self.work_off(core);
            has_more |= more;
        };
        if has_more {
            self.waiting.ring_hub();
        }
        is_left
    }
}
