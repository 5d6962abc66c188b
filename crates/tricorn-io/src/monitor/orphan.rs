//! When the arbiter has died no process tells this worker to leave: its monitor does.
//!
//! A pipe that only the arbiter holds open for writing ends when that process does, however it ended. Watching it costs
//! nothing while nothing happens, and the monitor sees it at once: no poll of `getppid`, and no need for Python, which an
//! application may keep from running.
use crate::engine::shared::Shared;
use rustix::process::{Signal, getpid, kill_process};
use std::time::Duration;

/// Leaves as if `TERM` had come, which it has from then on: Python's handler runs if it can, and what needs no Python is
/// done anyway. What is not finished after `graceful_timeout` is killed, as the arbiter would.
pub fn leave(shared: &Shared) {
    let patience = Duration::from_nanos(shared.config.graceful_timeout);
    // A thread: the monitor ends when the worker has drained, and a hook of the application may hang after that.
    let last = std::thread::Builder::new().name("tricorn-orphan".into()).spawn(move || {
        std::thread::sleep(patience);
        tell(Signal::KILL);
    });
    let mut core = shared.baton.take();
    let text = || format!("Parent changed, shutting down: worker (pid: {})", getpid());
    core.reactor.notice(true, text);
    tell(Signal::TERM);
    shared.drain(&mut core);
    drop(core);
    if last.is_err() {
        tell(Signal::KILL); // no arbiter would see to it that this process ends
    }
}

fn tell(signal: Signal) {
    let _ = kill_process(getpid(), signal);
}
