//! What a look found, as it is told: JSON for programs, and for the text of `tricorn doctor`.
use crate::calls::Described;
use crate::python::frames::{PyFrame, Walks};
use crate::verdict::Verdict;
use serde::Serialize;

#[derive(Debug, Serialize)]
pub struct Look {
    pub pid: u32,
    pub command: String,
    pub python: Option<Interpreter>,
    pub seconds: f64,
    pub threads: Vec<Thread>,
    pub walks: Walks,
    /// The steps that were left out for all threads, in sentences: why, and what would help.
    pub missing: Vec<String>,
    /// The same for those threads whose `native` is `forbidden`; empty if there are none.
    pub forbidden: String,
    /// These, and what else is to be known of the look.
    pub notes: Vec<String>,
}

#[derive(Debug, Serialize)]
pub struct Interpreter {
    /// `3.12`.
    pub version: String,
    /// The file that it is: libpython, or the program.
    pub path: String,
    pub gil: Gil,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Gil {
    /// None: there is none, or it was not found.
    pub locked: Option<bool>,
    /// The thread that holds it.
    pub holder: Option<u32>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Thread {
    pub tid: u32,
    pub name: String,
    pub main: bool,
    /// The kernel's letter: R, S, D …
    pub state: char,
    /// Shares of the time of the look: on a processor, and waiting for one.
    pub cpu: f64,
    pub queued: f64,
    pub verdict: Verdict,
    pub sentence: String,
    /// Innermost first.
    pub python: Vec<PyFrame>,
    /// The innermost line of the application ([`crate::application`]).
    pub application: Option<PyFrame>,
    pub native: Native,
    pub call: Option<Described>,
    pub wait_channel: String,
    pub gil: ThreadGil,
    /// Frames came and went while they were read.
    pub moving: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ThreadGil {
    pub holds: bool,
    pub waits: bool,
    /// The thread that keeps the GIL from it, where that is the verdict.
    pub holder: Option<u32>,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct Native {
    /// Innermost first.
    pub frames: Vec<NativeFrame>,
    /// The first library on the stack that is neither libc nor the interpreter, and its function.
    pub library: Option<Library>,
    /// Why there are no frames; may be empty.
    pub missing: String,
    /// The kernel does not permit to ask what this thread is at.
    pub forbidden: bool,
}

#[derive(Clone, Debug, Serialize)]
pub struct NativeFrame {
    pub address: u64,
    pub path: String,
    pub function: Option<String>,
    pub offset: u64,
    /// False: found by looking for it on the stack; it may be left over from a call that is over.
    pub certain: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Library {
    pub name: String,
    pub path: String,
    pub function: Option<String>,
}

impl Thread {
    /// One that could not be looked at; `why` is a sentence.
    pub fn unseen(tid: u32, why: &str) -> Self {
        Self {
            tid,
            name: String::new(),
            main: false,
            state: '?',
            cpu: 0.0,
            queued: 0.0,
            verdict: Verdict::Undecided,
            sentence: format!("What it is at cannot be told: {why}"),
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
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_else(|error| format!("{{\"error\": \"{error}\"}}"))
    }
}
