//! Samples one thread: its Python frames, and the C function that it waits in.
//!
//! A native stack costs ten times as much as the Python frames. So it is read once for each place: a thread that is in the same system call
//! with the same stack pointer, below the same line of Python, has come there by the same functions.
use crate::calls;
use crate::leaves::Key;
use crate::look::{Doctor, maps};
use crate::naming;
use crate::procfs::{Call, Entered};
use crate::python::contexts::{self, Marks};
use crate::python::frames::PyFrame;
use crate::python::runtime::{GilState, PyThread};
use std::time::{Duration, Instant};

/// What was seen of a thread in one moment.
#[derive(Debug, Default)]
pub struct Spot {
    /// Innermost first; before them the C function that waits, as a frame of `[library]`, where it is known.
    pub frames: Vec<PyFrame>,
    pub doing: Doing,
    /// Files were read to name it, which is done once for each.
    pub learned: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Doing {
    /// On a processor, or about to be.
    Runs,
    WaitsForGil,
    /// In a system call.
    Waits,
    /// The loop, or the server, waits for something to do.
    Rests,
    /// The kernel does not tell.
    #[default]
    Unknown,
}

impl Doctor {
    /// Whether a thread of this process runs or is runnable. Costs one read.
    pub fn computes(&self, thread: &PyThread) -> bool {
        match self.calls.of(thread.tid) {
            Call::Running => true,
            Call::Inside(entered) => self.wants_gil(thread, &entered),
            _ => false,
        }
    }

    /// Samples the thread. `None`: Python frames cannot be read.
    pub fn spot(&mut self, thread: &PyThread) -> Option<Spot> {
        let before = self.calls.of(thread.tid);
        let mut frames = self.frames_of(thread)?.frames;
        let entered = match before {
            Call::Running => return Some(Spot { frames, doing: Doing::Runs, learned: false }),
            Call::Inside(entered) => entered,
            _ => return Some(Spot { frames, ..Spot::default() }),
        };
        if self.wants_gil(thread, &entered) {
            frames.insert(0, in_c("[GIL]", "wait"));
            return Some(Spot { frames, doing: Doing::WaitsForGil, learned: false });
        }
        if naming::waits_for_events(calls::name(entered.number), &frames) {
            return Some(Spot { frames, doing: Doing::Rests, learned: false });
        }
        let (leaf, learned) = self.leaf(thread.tid, &entered, frames.first().map_or(0, |frame| frame.line));
        // The frames are those above that call if the thread is in it still.
        let is_same = self.calls.of(thread.tid).is_same(&before);
        if let Some(leaf) = leaf.filter(|_| is_same && !frames.is_empty()) {
            frames.insert(0, leaf);
        }
        Some(Spot { frames, doing: Doing::Waits, learned })
    }

    /// What tells the request that a thread of this process is at: contexts, and the values of a variable in them.
    pub fn identities(&self, marks: Marks) -> Vec<u64> {
        contexts::identities(&self.memory, marks)
    }

    fn gil_of(&self, thread: &PyThread) -> Option<GilState> {
        self.runtime.as_ref().ok()?.gil(&self.memory, thread.interpreter)
    }

    fn renew_maps(&mut self) {
        let Ok(maps) = maps(self.pid) else { return };
        if self.images.renew(maps) {
            // A leaf that is kept may lie in a library that was not known when it was named.
            self.leaves.known.clear();
        }
    }

    fn wants_gil(&self, thread: &PyThread, entered: &Entered) -> bool {
        entered.number == libc::SYS_futex
            && self.gil_of(thread).is_some_and(|gil| (gil.start..gil.end).contains(&entered.arguments[0]))
    }

    fn leaf(&mut self, tid: u32, entered: &Entered, line: i32) -> (Option<PyFrame>, bool) {
        let key = Key { tid, stack: entered.stack, program: entered.program, line };
        if let Some(known) = self.leaves.known.get(&key) {
            return (known.clone(), false);
        }
        if self.leaves.renewed.is_none_or(|at| at.elapsed() >= RENEW) {
            self.renew_maps();
            self.leaves.renewed = Some(Instant::now());
        }
        let known = self.images.known();
        let native = self.native(entered.stack, entered.program);
        let leaf = match (native.library, native.frames.into_iter().next()) {
            (Some(library), _) => library.function.map(|function| in_c(&format!("[{}]", library.name), &function)),
            // Nothing but libc, and the interpreter: the function that calls the kernel.
            (None, Some(frame)) => {
                frame.function.map(|function| in_c(&format!("[{}]", naming::library(&frame.path)), &function))
            }
            (None, None) => None,
        };
        if self.leaves.known.len() >= MOST_LEAVES {
            self.leaves.known.clear();
        }
        self.leaves.known.insert(key, leaf.clone());
        (leaf, self.images.known() > known)
    }
}

fn in_c(library: &str, function: &str) -> PyFrame {
    PyFrame { file: library.to_owned(), function: function.to_owned(), line: 0 }
}

const MOST_LEAVES: usize = 4096;
/// Libraries that were loaded since are looked for this often.
const RENEW: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trouble::Trouble;

    #[test]
    fn a_process_without_python_has_no_spots() {
        assert!(matches!(Doctor::open(std::process::id()), Err(Trouble::NotPython(_))));
    }
}
