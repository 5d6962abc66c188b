//! What the process has used of the machine, noted once in a while on its page.
use crate::clock::{MILLI, SECOND, process_cpu};
use crate::scoreboard::{Scoreboard, Word};
use crate::sys::memory;
use crate::waiting::Waiting;
use crate::waiting::loop_time::LoopUse;

/// How often the processor time is looked at, and the memory, while the monitor ticks.
const CPU: u64 = 100 * MILLI;
const MEMORY: u64 = SECOND;
/// A process that has computed for less than one part in so many of a time waits.
const COMPUTES: u64 = 20;

#[derive(Debug, Default)]
pub(super) struct Usage {
    cpu_due: u64,
    memory_due: u64,
    event_loop: LoopUse,
    /// When the processor time was looked at last, and what it was.
    before: (u64, u64),
    /// The process has computed since the look before.
    computes: bool,
}

impl Usage {
    pub fn look(&mut self, waiting: &Waiting, board: Scoreboard, now: u64) {
        if now < self.cpu_due {
            return;
        }
        self.cpu_due = now + CPU;
        let cpu = process_cpu();
        board.set(Word::Cpu, cpu);
        let (then, before) = std::mem::replace(&mut self.before, (now, cpu));
        self.computes = cpu.saturating_sub(before) > now.saturating_sub(then) / COMPUTES;
        waiting.note_loop(&mut self.event_loop, now);
        if now >= self.memory_due {
            self.memory_due = now + MEMORY;
            board.set(Word::Resident, memory::resident().unwrap_or(0));
        }
    }

    /// In how many nanoseconds to look again at a process whose calls compute. Of one that waits the figures stay what they are.
    pub fn due(&self, now: u64) -> Option<u64> {
        self.computes.then(|| self.memory_due.saturating_sub(now).max(CPU))
    }
}
