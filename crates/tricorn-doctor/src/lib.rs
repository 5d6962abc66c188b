//! Examines the threads of a running Python process by reading its memory: without the GIL, without signals, without stopping it.
//!
//! ```text
//!   /proc/PID/maps ──▶ maps ──▶ images, elf (names, unwind tables) ──▶ native (stack of a thread in a system call) ─┐
//!   /proc/PID/task/TID/* ──▶ procfs ──▶ calls, descriptors (what it waits for, and for whom) ───────────────────────┼▶ look ─▶ report
//!   memory (process_vm_readv) ──▶ python (threads, frames, lines, the GIL) ─────────────────────────────────────────┘    │
//!                                                                                             naming, verdict (pure) ◀───┘
//! ```
//!
//! Rules: whatever is read may be wrong the next moment, or was freed. No address is dereferenced: all are given to the kernel, which
//! copies or refuses. Each list that is followed has an end. What two readings do not agree on is not told.

mod calls;
mod descriptors;
mod elf;
mod gathered;
mod glances;
mod images;
mod leaves;
mod look;
mod maps;
mod memory;
mod naming;
mod native;
mod procfs;
mod python;
mod report;
mod spot;
mod trouble;
mod verdict;

pub use look::{Doctor, Halt};
pub use memory::Memory;
pub use naming::{application, inside_server, is_loop};
pub use native::Standing;
pub use python::contexts::{Marks, identities, offsets_of};
pub use python::frames::{PyFrame, Walked, Walks};
pub use python::runtime::PyThread;
pub use report::{Gil, Interpreter, Library, Look, Native, NativeFrame, Thread, ThreadGil};
pub use spot::{Doing, Spot};
pub use trouble::Trouble;
pub use verdict::{Verdict, starved};
