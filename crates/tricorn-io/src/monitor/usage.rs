//! What the process has used of the machine, noted once in a while on its page.
use crate::clock::{MILLI, SECOND, process_cpu};
use crate::scoreboard::{Scoreboard, Word};
use crate::sys::memory;
use crate::waiting::Waiting;
use crate::waiting::loop_time::LoopUse;

/// How often the processor time is looked at, and the memory, while the monitor ticks.
const CPU: u64 = 100 * MILLI;
const MEMORY: u64 = SECOND;

#[derive(Debug, Default)]
pub(super) struct Usage {
    cpu_due: u64,
    memory_due: u64,
    event_loop: LoopUse,
}

impl Usage {
    pub fn look(&mut self, waiting: &Waiting, board: Scoreboard, now: u64) {
        if now < self.cpu_due {
            return;
        }
        self.cpu_due = now + CPU;
        board.set(Word::Cpu, process_cpu());
        waiting.note_loop(&mut self.event_loop, now);
        if now >= self.memory_due {
            self.memory_due = now + MEMORY;
            board.set(Word::Resident, memory::resident().unwrap_or(0));
        }
    }
}
