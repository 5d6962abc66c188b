//! An engine's life with its monitor: from the start of that thread to its end.
use crate::engine::Engine;
use crate::engine::lifecycle::Stage;
use crate::engine::shared::Shared;
use crate::monitor;
use crate::scoreboard::State;
use crate::sys::fork::is_child;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{MutexGuard, PoisonError};
use std::thread::JoinHandle;

impl Engine {
    /// Starts the monitor thread. A process that is forked from now on has no monitor (see `fork.rs`).
    pub fn start(&self) -> std::io::Result<()> {
        let shared = self.shared.clone();
        let thread = std::thread::Builder::new().name("tricorn-monitor".into());
        let handle = thread.spawn(move || {
            if catch_unwind(AssertUnwindSafe(|| monitor::run(&shared))).is_err() {
                shared.break_down();
            }
        })?;
        *self.monitor() = Some(handle);
        if self.shared.waiting.sampling.is_on() {
            let shared = self.shared.clone();
            // Without it nothing but the profile is missing.
            if let Ok(handle) =
                std::thread::Builder::new().name("tricorn-sampler".into()).spawn(move || monitor::sampler::run(&shared))
            {
                self.shared.waiting.sampling.keep_thread(handle);
            }
        }
        self.shared.life.reach(Stage::Serving);
        Ok(())
    }

    /// Keeps what owns the memory of scoreboards, for as long as this engine or its monitor may write there.
    pub fn keep(&self, memory: Box<dyn Any + Send + Sync>) {
        let _ = self.shared.memory.set(memory);
    }

    fn monitor(&self) -> MutexGuard<'_, Option<JoinHandle<()>>> {
        self.monitor.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Joins the monitor, closes every connection that is not with an application call, writes the log's last lines. What the
    /// error log should be told, as no app thread is left to do so.
    pub fn close(&self) -> Option<String> {
        if is_child() {
            return None; // the monitor is the parent's, and so are the connections
        }
        let shared = &*self.shared;
        self.end_monitor();
        shared.baton.take().reactor.close_gate();
        let mut next = Some(0);
        while let Some(place) = next {
            next = shared.baton.take().reactor.close_from(place);
        }
        shared.responses.disks.pool().end();
        shared.baton.take().reactor.take_all_returned();
        let lost = shared.logs.flush(shared.board);
        shared.board.state(State::Stopped);
        #[cfg(feature = "baton-tracking")]
        crate::engine::holds::tell_all();
        (lost > 0).then(|| format!("The worker exited before the access log was written: {lost} lines were lost"))
    }

    fn end_monitor(&self) {
        self.stop();
        self.shared.life.reach(Stage::Closed);
        self.shared.waiting.alarm.ring();
        self.shared.waiting.sampling.end();
        if let Some(handle) = self.monitor().take() {
            let _ = handle.join(); // it has caught its panic
        }
    }
}

impl Drop for Engine {
    /// The monitor must not be the last that has the memory of scoreboards: its owner may be Python's.
    fn drop(&mut self) {
        if !is_child() && self.monitor().is_some() {
            self.end_monitor();
            self.shared.logs.dismiss();
        }
    }
}

impl Shared {
    /// The monitor has panicked. Without it no deadline is kept: the worker must go, and all who wait must hear of it.
    #[cold]
    fn break_down(&self) {
        self.baton.is_to_break();
        self.wake_all(&mut self.baton.take());
    }
}
