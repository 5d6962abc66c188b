//! Jobs that are done without the baton (`reactor/jobs.rs`): by app threads that are idle, by a hub that is, or by the monitor.
use super::Engine;
use super::baton::BatonGuard;
use super::shared::Shared;
use crate::clock::{self, MILLI};
use crate::sys::fork::is_child;
use crate::turn::Turn;

/// For how long the monitor does jobs before it looks around again.
const SLICE: u64 = 4 * MILLI;
/// How long a job may be that a hub does: its loop, and with it the application, waits meanwhile. Longer ones are the monitor's, such as
/// those with an RSA key of 4,096 bits.
const AT_HUB: u64 = MILLI / 2;

impl Engine {
    /// Whether a hub that has nothing else to do is to do a job before it rests: to wake the monitor and to be woken by it costs more than
    /// most jobs do. `turn`: how long the hub may keep its loop.
    #[inline]
    pub fn has_job_for_hub(&self, turn: Turn) -> bool {
        let shared = &*self.shared;
        if shared.config.tls.is_none() || is_child() {
            return false;
        }
        let core = shared.baton.take();
        core.reactor.has_short_job(AT_HUB) && !core.reactor.has_work() && !turn.is_over(clock::now())
    }

    /// Does a job. Without the GIL.
    pub fn work_off_at_hub(&self) {
        self.shared.work_off(self.shared.baton.take());
    }
}

impl Shared {
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
