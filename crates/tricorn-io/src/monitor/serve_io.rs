//! I/O in place of the app threads.
use crate::engine::baton::Core;
use crate::engine::shared::Shared;
use crate::reactor::Runner;

/// Reads, parses, queues, flushes; starts nothing.
pub(super) fn serve_io(shared: &Shared, core: &mut Core) {
    core.reactor.pump(Runner::Monitor);
    // An unfinished batch is never replaced.
    if core.reactor.events().is_empty() && shared.see_events(core).is_ok() {
        core.reactor.pump(Runner::Monitor);
    }
    shared.take_in_place(core);
    if core.reactor.is_woken() {
        // The wake-up stays noted for the next app thread; its descriptor must not stay readable, or the wait for
        // events would end at once until that thread is back.
        shared.take_wakeups(core);
        shared.waiting.ring_hub();
    }
    shared.look_after_queue(core);
}
