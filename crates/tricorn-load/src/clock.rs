//! Time of a run: nanoseconds since its start, and what the processor gave a thread.
use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, Instant};

pub const SECOND: u64 = 1_000_000_000;
pub const MILLISECOND: u64 = 1_000_000;

/// The start of a run, which all its threads count from.
#[derive(Debug, Clone, Copy)]
pub struct Clock(Instant);

impl Clock {
    /// `head_start`: how far in the future the run begins, so that all threads are ready.
    pub fn starting_in(head_start: Duration) -> Clock {
        Clock(Instant::now() + head_start)
    }

    /// 0 before the start.
    #[inline]
    pub fn now(&self) -> u64 {
        self.0.elapsed().as_nanos() as u64
    }

    pub fn wait_for_start(&self) {
        std::thread::sleep(self.0.saturating_duration_since(Instant::now()));
    }
}

/// What the calling thread had of its processor so far, in nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
pub struct Usage {
    pub cpu: u64,
    /// Time in which it could have run, and another thread did (proc(5), schedstat). 0 where the kernel does not tell.
    pub runnable: u64,
}

impl Usage {
    pub fn now() -> Usage {
        let used = clock_gettime(ClockId::ThreadCPUTime);
        let schedule = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        let runnable = schedule.split_whitespace().nth(1).and_then(|word| word.parse().ok());
        Usage { cpu: used.tv_sec as u64 * SECOND + used.tv_nsec as u64, runnable: runnable.unwrap_or_default() }
    }

    pub fn since(self, before: Usage) -> Usage {
        Usage { cpu: self.cpu.saturating_sub(before.cpu), runnable: self.runnable.saturating_sub(before.runnable) }
    }
}

pub fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}
