//! Finds the interpreter in a process: its version, threads, and the holder of the GIL.
use super::layout::{self, GilAt, Layout};
use crate::images::Images;
use crate::maps::Mapping;
use crate::memory::Memory;
use std::collections::{HashMap, HashSet};

pub struct Runtime {
    pub minor: u8,
    /// The file that is the interpreter: libpython, or the program.
    pub path: String,
    pub layout: Layout,
    address: u64,
    /// `PyCode_Type`, which each code object points to.
    pub code_type: Option<u64>,
    /// Where in a `struct pthread` the kernel's number of the thread stands: 3.10 knows only pthread_self().
    tid_offset: Option<u64>,
}

/// A thread that Python knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PyThread {
    /// Its `PyThreadState`.
    pub state: u64,
    /// As the process itself numbers it.
    pub tid: u32,
    pub interpreter: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GilState {
    pub locked: bool,
    /// The thread state that has it, or had it last.
    pub holder: u64,
    /// Where it lies, with all that threads wait on.
    pub start: u64,
    pub end: u64,
}

/// The kernel's numbers of the threads there are now, as the process itself has them.
pub type Tids<'a> = &'a dyn Fn() -> HashSet<u32>;

/// Why there are no Python frames.
#[derive(Debug, PartialEq, Eq)]
pub enum Unreadable {
    NotPython,
    /// A sentence.
    Unknown(String),
}

impl Runtime {
    pub fn find(memory: &Memory, images: &mut Images, tids: Tids<'_>) -> Result<Self, Unreadable> {
        let candidates: Vec<Mapping> = images.maps().code().filter(|code| may_be_python(code)).cloned().collect();
        // libpython first: a program that is linked with it has copies of some of its names.
        let (libraries, programs): (Vec<_>, Vec<_>) =
            candidates.into_iter().partition(|code| code.base_name().starts_with("libpython"));
        let found = libraries.iter().chain(&programs).find_map(|code| {
            let names = images.named(code, &["_PyRuntime", "PyCode_Type", "Py_Version"]);
            Some((code.clone(), names[0]?, names[1], names[2]))
        });
        let Some((code, address, code_type, version)) = found else {
            let Some(looks) = libraries.first() else { return Err(Unreadable::NotPython) };
            let why = if looks.deleted { "was replaced after the process started" } else { "has no symbol _PyRuntime" };
            return Err(Unreadable::Unknown(format!("{} {why}, so Python frames cannot be found.", looks.path)));
        };
        let told = layout::of_debug_offsets(&memory.up_to(address, layout::DEBUG_OFFSETS_BYTES));
        let (minor, layout) = match told {
            Some(told) => told,
            None => {
                let minor = version
                    .and_then(|at| memory.word(at))
                    .and_then(|version| (version >> 24 == 3).then_some((version >> 16 & 0xff) as u8))
                    .or_else(|| minor_of_path(&code.path));
                let layout = minor.and_then(layout::of_version);
                let known = minor.zip(layout);
                let named = minor.map_or("an unknown version".to_owned(), |minor| format!("3.{minor}"));
                known.ok_or_else(|| {
                    Unreadable::Unknown(format!("{} is {named}; Python frames can be read in 3.10 to 3.14.", code.path))
                })?
            }
        };
        let mut runtime = Self { minor, path: code.path, layout, address, code_type, tid_offset: None };
        runtime.verify(memory, tids)?;
        Ok(runtime)
    }

    #[cfg(test)]
    pub fn made(layout: Layout, code_type: u64) -> Self {
        Self { minor: 12, path: String::new(), layout, address: 0, code_type: Some(code_type), tid_offset: None }
    }

    /// Follows the tables to a thread that the kernel knows, or says that they are wrong.
    fn verify(&mut self, memory: &Memory, tids: Tids<'_>) -> Result<(), Unreadable> {
        // Threads begin and end meanwhile, so that a list of the interpreter's and one of the kernel's may have little in common.
        for _ in 0..ATTEMPTS {
            if self.layout.thread.native.is_none() {
                self.tid_offset = self.find_tid_offset(memory, tids);
            }
            let threads = self.threads(memory);
            let tids = tids();
            if threads.iter().any(|thread| tids.contains(&thread.tid)) {
                return Ok(());
            }
        }
        Err(Unreadable::Unknown(format!(
            "{} is 3.{}, but is not laid out like the builds that are known: its threads cannot be found.",
            self.path, self.minor
        )))
    }

    /// The interpreters' thread states, in order of age; bounded, since a list that changes may seem to have no end.
    pub fn threads(&self, memory: &Memory) -> Vec<PyThread> {
        let mut threads = Vec::new();
        for (interpreter, state) in self.states(memory) {
            let tid = match self.layout.thread.native {
                Some(offset) => memory.word(state + offset).and_then(|tid| u32::try_from(tid).ok()),
                None => self.tid_by_pthread(memory, state),
            };
            if let Some(tid) = tid.filter(|&tid| tid != 0) {
                threads.push(PyThread { state, tid, interpreter });
            }
        }
        threads
    }

    fn states(&self, memory: &Memory) -> Vec<(u64, u64)> {
        let at = &self.layout.interpreters;
        let mut states = Vec::new();
        let mut interpreter = memory.word(self.address + at.head);
        for _ in 0..MOST_INTERPRETERS {
            let Some(this) = interpreter.filter(|&this| plausible(this)) else { break };
            let mut state = memory.word(this + at.threads);
            let mut seen = HashSet::new();
            while let Some(thread) = state.filter(|&thread| plausible(thread) && seen.len() < MOST_THREADS) {
                let owner = memory.word(thread + self.layout.thread.interpreter);
                if owner != Some(this) || !seen.insert(thread) {
                    break;
                }
                states.push((this, thread));
                state = memory.word(thread + self.layout.thread.next);
            }
            interpreter = memory.word(this + at.next);
        }
        states
    }

    /// The place in `struct pthread` at which every thread of Python has a number that the kernel knows.
    fn find_tid_offset(&self, memory: &Memory, tids: Tids<'_>) -> Option<u64> {
        let ident =
            |(_, state): (u64, u64)| memory.word(state + self.layout.thread.ident).filter(|&ident| plausible(ident));
        let idents: Vec<u64> = self.states(memory).into_iter().rev().filter_map(ident).take(SAMPLE).collect();
        let tids = tids();
        (0..PTHREAD_BYTES).step_by(4).find(|offset| {
            let numbers = idents.iter().filter_map(|ident| Some(u32::from_ne_bytes(memory.bytes(ident + offset)?)));
            let numbers: HashSet<u32> = numbers.filter(|number| tids.contains(number)).collect();
            !idents.is_empty() && numbers.len() == idents.len()
        })
    }

    fn tid_by_pthread(&self, memory: &Memory, state: u64) -> Option<u32> {
        let ident = memory.word(state + self.layout.thread.ident).filter(|&ident| plausible(ident))?;
        memory.bytes(ident + self.tid_offset?).map(u32::from_ne_bytes)
    }

    /// None: it is not to be found, or there is none.
    pub fn gil(&self, memory: &Memory, interpreter: u64) -> Option<GilState> {
        let gil = &self.layout.gil;
        let start = match gil.at {
            GilAt::Runtime(offset) => self.address + offset,
            GilAt::Interpreter(offset) => memory.word(interpreter + offset).filter(|&start| plausible(start))?,
            GilAt::Nowhere => return None,
        };
        let locked = memory.int(start + gil.locked)?;
        let holder = memory.word(start + gil.holder)?;
        // -1: not made yet. All else is no GIL.
        matches!(locked, -1..=1).then_some(GilState { locked: locked == 1, holder, start, end: start + gil.size })
    }

    /// Whether an interpreter is collecting garbage.
    pub fn collects(&self, memory: &Memory, interpreter: u64) -> bool {
        memory.int(interpreter + self.layout.interpreters.collecting) == Some(1)
    }

    /// The GIL of each interpreter that has threads.
    pub fn gils(&self, memory: &Memory, threads: &[PyThread]) -> HashMap<u64, GilState> {
        let interpreters: HashSet<u64> = threads.iter().map(|thread| thread.interpreter).collect();
        interpreters.into_iter().filter_map(|each| Some((each, self.gil(memory, each)?))).collect()
    }
}

/// Aligned, and not in the first page or the kernel's half.
pub fn plausible(address: u64) -> bool {
    (0x1000..1 << 56).contains(&address) && address.is_multiple_of(4)
}

fn may_be_python(code: &Mapping) -> bool {
    let name = code.base_name();
    name.starts_with("libpython") || !(name.contains(".so") || name.starts_with("ld-"))
}

/// `libpython3.10.so.1.0`, `/usr/bin/python3.10`.
fn minor_of_path(path: &str) -> Option<u8> {
    let rest = path.rsplit_once("python3.")?.1;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

const MOST_INTERPRETERS: usize = 64;
const MOST_THREADS: usize = 10_000;

/// Of which threads the kernel's number is looked for: the oldest, which stand last, and stay.
const SAMPLE: usize = 3;
const ATTEMPTS: usize = 8;

/// No libc has a larger head of `struct pthread` before that number.
const PTHREAD_BYTES: u64 = 2048;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_in_the_name() {
        assert_eq!(minor_of_path("/usr/lib/libpython3.10.so.1.0"), Some(10));
        assert_eq!(minor_of_path("/opt/python3.9/bin/python3.12"), Some(12));
        assert_eq!(minor_of_path("/srv/server"), None);
    }

    #[test]
    fn addresses_that_cannot_be_are_not_followed() {
        assert!(plausible(0x5500_0000_1000));
        assert!(!plausible(0) && !plausible(0x8) && !plausible(u64::MAX - 3) && !plausible(0x5500_0000_1001));
    }
}
