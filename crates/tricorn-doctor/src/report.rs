//! The report of a look: JSON for programs, and the source of `tricorn doctor`'s text.
use crate::calls::Described;
use crate::python::frames::{PyFrame, Walks};
use crate::verdict::Verdict;
use serde::Serialize;

/// Report on a process.
#[derive(Debug, Serialize)]
pub struct Look {
    pub pid: u32,
    pub command: String,
    pub python: Option<Interpreter>,
    pub seconds: f64,
    pub threads: Vec<Thread>,
    pub walks: Walks,
    /// Steps that were skipped for all threads: the reason and the remedy, in sentences.
    pub missing: Vec<String>,
    /// The same for threads whose `native` is `forbidden`; empty if there are none.
    pub forbidden: String,
    /// Both of these, and other remarks on the look.
    pub notes: Vec<String>,
}

/// The CPython interpreter of the process.
#[derive(Debug, Serialize)]
pub struct Interpreter {
    /// Version, as `3.12`.
    pub version: String,
    /// File with the interpreter: libpython, or the program itself.
    pub path: String,
    pub gil: Gil,
}

/// State of the GIL at the end of the look.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Gil {
    /// `None` in a free-threaded build, or if it was not found.
    pub locked: Option<bool>,
    /// Thread that holds it.
    pub holder: Option<u32>,
}

/// One thread: its state, verdict and stacks.
#[derive(Clone, Debug, Serialize)]
pub struct Thread {
    pub tid: u32,
    pub name: String,
    pub main: bool,
    /// State letter of proc(5): R, S, D …
    pub state: char,
    /// Share of the look's time on a CPU.
    pub cpu: f64,
    /// Share of the look's time waiting for a CPU.
    pub queued: f64,
    pub verdict: Verdict,
    pub sentence: String,
    /// Innermost first.
    pub python: Vec<PyFrame>,
    /// Innermost line of the application ([`crate::application`]).
    pub application: Option<PyFrame>,
    pub native: Native,
    pub call: Option<Described>,
    pub wait_channel: String,
    pub gil: ThreadGil,
    /// Whether frames changed while they were read.
    pub moving: bool,
}

/// Relation of a thread to the GIL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ThreadGil {
    pub holds: bool,
    pub waits: bool,
    /// Thread that keeps the GIL from this one, if that is the verdict.
    pub holder: Option<u32>,
}

/// Native stack of a thread.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Native {
    /// Innermost first.
    pub frames: Vec<NativeFrame>,
    /// Innermost library that is neither libc nor the interpreter, and its function.
    pub library: Option<Library>,
    /// Reason why there are no frames; may be empty.
    pub missing: String,
    /// Whether the kernel denies access to the thread's registers.
    pub forbidden: bool,
}

/// One frame of a native stack.
#[derive(Clone, Debug, Serialize)]
pub struct NativeFrame {
    pub address: u64,
    pub path: String,
    pub function: Option<String>,
    pub offset: u64,
    /// `false`: found by scanning the stack, and possibly left over from an earlier call.
    pub certain: bool,
}

/// A shared library on the native stack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Library {
    pub name: String,
    pub path: String,
    pub function: Option<String>,
}

impl Thread {
    /// Makes the report of a thread that could not be examined; `why` is a sentence.
    pub fn unseen(tid: u32, why: &str) -> Self {
        Self {
            tid,
            name: String::new(),
            main: false,
            state: '?',
            cpu: 0.0,
            queued: 0.0,
            verdict: Verdict::Undecided,
            sentence: format!("Unknown: {why}"),
            python: Vec::new(),
            application: None,
            native: Native::without(why),
            call: None,
            wait_channel: String::new(),
            gil: ThreadGil::default(),
            moving: false,
        }
    }
}

impl Native {
    pub(crate) fn without(why: &str) -> Self {
        Self { missing: why.to_owned(), ..Self::default() }
    }
}

impl Look {
    /// Serializes the report as `tricorn doctor --json` prints it.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_else(|error| format!("{{\"error\": \"{error}\"}}"))
    }
}
