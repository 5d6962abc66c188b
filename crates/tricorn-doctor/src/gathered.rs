//! Data that one look gathers about a thread, and the report made from it.
use crate::calls::Described;
use crate::glances::Glances;
use crate::naming;
use crate::procfs::{self, Call};
use crate::python::frames::{PyFrame, Walked};
use crate::python::runtime::{GilState, PyThread};
use crate::report::{Library, Native, NativeFrame, Thread, ThreadGil};
use crate::verdict::{self, CallEvidence, Evidence, GilEvidence, Verdict};
use std::collections::HashMap;

/// What is known of a thread before it is judged.
pub(crate) struct Gathered {
    pub tid: u32,
    pub state: char,
    pub cpu: f64,
    pub queued: f64,
    pub inside: Inside,
    /// Whether each reading found another system call.
    pub in_slices: bool,
    pub wait_channel: String,
    pub python: Option<PyThread>,
    pub walked: Walked,
}

/// The thread that has a GIL.
pub(crate) struct Holder {
    pub tid: u32,
    /// Address of its `PyThreadState`.
    pub state: u64,
    /// Name and place, as `thread 123 (name), at file:line in function`.
    pub words: String,
    /// Whether it held the GIL for the whole look, in one call.
    pub keeps_it: bool,
}

/// Who holds each interpreter's GIL: the thread that kept it through the look, or else the one that has it at its end.
pub(crate) fn holders(
    pid: u32,
    gathered: &[Gathered],
    gils: &HashMap<u64, GilState>,
    glances: &HashMap<u64, Glances>,
) -> HashMap<u64, Holder> {
    let mut holders: HashMap<u64, Holder> = HashMap::new();
    for each in gathered {
        let Some(thread) = each.python else { continue };
        let keeps_it = glances.get(&thread.state).is_some_and(Glances::keeps_gil);
        let has_it = gils.get(&thread.interpreter).is_some_and(|gil| gil.locked && gil.holder == thread.state);
        let is_known = holders.get(&thread.interpreter).is_some_and(|known| known.keeps_it);
        if keeps_it || (has_it && !is_known) {
            let at = naming::application(&each.walked.frames);
            let at = at.map(|frame| format!(", at {}", short(frame))).unwrap_or_default();
            let words = format!("thread {} ({}){at}", each.tid, procfs::name(pid, each.tid));
            holders.insert(thread.interpreter, Holder { tid: each.tid, state: thread.state, words, keeps_it });
        }
    }
    holders
}

/// A thread in the kernel.
pub(crate) struct Inside {
    pub call: Call,
    pub described: Option<Described>,
    pub native: Native,
    pub waits_for_gil: bool,
}

impl Gathered {
    /// `seen` is of its glances, `holder` who has its GIL. `is_known`: what threads Python has.
    pub fn judged(self, pid: u32, is_known: bool, seen: Option<&Glances>, holder: Option<&Holder>) -> Thread {
        let name = procfs::name(pid, self.tid);
        let application = naming::application(&self.walked.frames).cloned();
        let holds = self.python.zip(holder).is_some_and(|(thread, holder)| thread.state == holder.state);
        let other = holder.filter(|_| !holds);
        let call_name = self.inside.described.as_ref().map(|call| call.name.as_str()).unwrap_or_default();
        let evidence = Evidence {
            running: self.cpu,
            queued: self.queued,
            is_stopped: matches!(self.state, 'T' | 't'),
            // Where the interpreter is not known, each thread may be one of it.
            is_python: self.python.is_some() || !is_known,
            call: self.inside.described.as_ref().map(call_evidence),
            in_slices: self.in_slices,
            collects: seen.is_some_and(Glances::collects),
            gil: GilEvidence {
                held: seen.map(Glances::held).unwrap_or_default(),
                waits: self.inside.waits_for_gil,
                holder: other.map(|holder| holder.words.clone()).unwrap_or_default(),
                is_kept: other.is_some_and(|holder| holder.keeps_it),
            },
            position: seen.map(Glances::position).unwrap_or_default(),
            at: application.as_ref().map(short).unwrap_or_default(),
            library: self
                .inside
                .native
                .library
                .as_ref()
                .map(|library| in_words(library, self.python.is_some()))
                .unwrap_or_default(),
            in_lock: in_lock(&self, call_name),
            in_own_poll: naming::waits_for_events(call_name, &self.walked.frames),
        };
        let (verdict, sentence) = verdict::judge(&evidence);
        let blamed = other.filter(|_| verdict == Verdict::GilVictim).map(|holder| holder.tid);
        Thread {
            tid: self.tid,
            name,
            main: self.tid == pid,
            state: self.state,
            cpu: round(self.cpu),
            queued: round(self.queued),
            verdict,
            sentence,
            moving: self.walked.moving,
            python: self.walked.frames,
            application,
            native: self.inside.native,
            call: self.inside.described.filter(|_| !self.in_slices),
            wait_channel: self.wait_channel,
            gil: ThreadGil { holds, waits: self.inside.waits_for_gil, holder: blamed },
        }
    }
}

/// Of calls that are over: the last one, and the library that was found on each stack. A single stack was of no one moment.
pub(crate) fn one_of(slices: Vec<Inside>) -> Inside {
    let mut library: Option<Library> = None;
    let mut is_same = true;
    for found in slices.iter().filter_map(|slice| slice.native.library.as_ref()) {
        is_same &= library.as_ref().is_none_or(|before| before.path == found.path);
        library = Some(found.clone());
    }
    let native = Native { library: library.filter(|_| is_same), ..Native::without(MOVED) };
    let waits_for_gil = slices.iter().any(|slice| slice.waits_for_gil);
    let described = slices.into_iter().rev().find_map(|slice| slice.described);
    Inside { call: Call::Unknown, described, native, waits_for_gil }
}

/// The interpreter's own function that Python code has called: `_sre_SRE_Pattern_match`.
pub(crate) fn called_by_python(frames: &[NativeFrame]) -> Option<Library> {
    let named = |frame: &NativeFrame| frame.function.clone().unwrap_or_default();
    let inner = frames.iter().take_while(|frame| !naming::is_evaluation(&named(frame)));
    let called = inner.filter(|frame| frame.certain && frame.function.is_some() && !naming::is_plumbing(&named(frame)));
    let frame = called.last()?;
    Some(Library { name: naming::library(&frame.path), path: frame.path.clone(), function: frame.function.clone() })
}

fn call_evidence(call: &Described) -> CallEvidence {
    let peers: Vec<String> = call
        .descriptors
        .iter()
        .take(3)
        .map(|each| if each.what.is_empty() { format!("descriptor {}", each.fd) } else { each.what.clone() })
        .collect();
    let more = call.descriptors.len().saturating_sub(3);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let on = if peers.is_empty() { String::new() } else { format!("on {}{more}", peers.join(", ")) };
    let words: Vec<&str> = [on.as_str(), call.detail.as_str()].into_iter().filter(|part| !part.is_empty()).collect();
    CallEvidence { name: call.name.clone(), what: words.join(", ") }
}

fn in_lock(each: &Gathered, call: &str) -> bool {
    let functions =
        || each.inside.native.frames.iter().filter(|frame| frame.certain).filter_map(|frame| frame.function.as_deref());
    // A library that waits on a futex of its own is called through no lock of Python.
    let innermost = || each.walked.frames.first().is_some_and(|frame| frame.file.ends_with("/threading.py"));
    call == "futex" && each.inside.native.library.is_none() && (functions().any(naming::is_lock) || innermost())
}

pub(crate) fn short(frame: &PyFrame) -> String {
    format!("{}:{} in {}", frame.file, frame.line, frame.function)
}

/// What Python has called is a function; a thread of the library itself began in any.
pub(crate) fn in_words(library: &Library, is_called: bool) -> String {
    match &library.function {
        Some(function) if is_called => format!("{} ({function})", library.name),
        _ => library.name.clone(),
    }
}

fn round(share: f64) -> f64 {
    (share * 1000.0).round() / 1000.0
}

const MOVED: &str = "It continued while its stack was read.";
