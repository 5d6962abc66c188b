//! What is wrong with a thread, as far as one look can tell. Pure: evidence in, a verdict and one sentence out.
//!
//! The order of the questions is the order of certainty: what the kernel says first, then the GIL, then frames.
use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Verdict {
    /// Waits in the kernel; other Python threads can run.
    BlockedSyscall,
    /// Waits in the kernel, and no other Python thread can run meanwhile.
    BlockedHoldingGil,
    CpuPython,
    /// In native code that has released the GIL.
    CpuNative,
    /// In native code that keeps the GIL.
    CpuNativeGil,
    /// Collects garbage: Python's own collector, which keeps the GIL.
    GcPause,
    /// Waits for the GIL, which another thread has.
    GilVictim,
    LockWait,
    /// Could run, and gets no processor.
    Starved,
    /// Waits in its own poll for something to do.
    Idle,
    /// No thread of Python.
    Native,
    /// A signal or a debugger has stopped it.
    Stopped,
    /// A little of everything: it works, and waits, within one look.
    Undecided,
}

impl Verdict {
    pub fn computes_natively(self) -> bool {
        matches!(self, Self::CpuNative | Self::CpuNativeGil)
    }
}

/// What one look has found about a thread.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// Shares of the time of the look.
    pub running: f64,
    pub queued: f64,
    pub is_stopped: bool,
    pub is_python: bool,
    /// The system call it is in.
    pub call: Option<CallEvidence>,
    /// The call was another one at each reading: one of those that it waits in.
    pub in_slices: bool,
    /// The interpreter's collector was at work, and this thread had the GIL.
    pub collects: bool,
    pub gil: GilEvidence,
    pub position: PositionEvidence,
    /// `shop/orders.py:14 in pay`: the innermost Python frame.
    pub at: String,
    /// `librdkafka (rd_kafka_flush)`: where native code of a library is on the stack.
    pub library: String,
    /// A function of Python's locks is on the stack.
    pub in_lock: bool,
    /// The frames are those of an event loop that waits for events.
    pub in_own_poll: bool,
}

#[derive(Clone, Debug, Default)]
pub struct CallEvidence {
    pub name: String,
    /// `TCP to 10.0.0.5:5432`, `for 30 s`; may be empty.
    pub what: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Held {
    /// Not told: a free-threaded build, or one that is not known.
    #[default]
    Unknown,
    /// At every glance of this look.
    Always,
    Sometimes,
    Never,
}

#[derive(Clone, Debug, Default)]
pub struct GilEvidence {
    pub held: Held,
    pub waits: bool,
    /// `thread 123 (name), at file:line in function`: who has it instead; empty if that is not known.
    pub holder: String,
    /// The holder had it through the whole look, so that no other thread could run.
    pub is_kept: bool,
}

/// Where the innermost frame was, from glance to glance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PositionEvidence {
    #[default]
    Unknown,
    /// Always at the same call.
    Still,
    Moved,
}

pub fn judge(evidence: &Evidence) -> (Verdict, String) {
    let verdict = decide(evidence);
    (verdict, sentence(verdict, evidence))
}

fn decide(evidence: &Evidence) -> Verdict {
    use Verdict::*;
    // Of the time in which it had a processor or needed none.
    let busy = evidence.running / (1.0 - evidence.queued).max(0.01) >= 0.5;
    match evidence {
        Evidence { is_stopped: true, .. } => Stopped,
        // It wakes every 5 ms to ask again, and may queue for a processor each time: the GIL is still what it lacks.
        Evidence { gil: GilEvidence { waits: true, .. }, .. } => GilVictim,
        _ if evidence.queued >= 0.5 && evidence.running < evidence.queued * 0.25 => Starved,
        Evidence { is_python: false, .. } => Native,
        Evidence { collects: true, .. } if busy => GcPause,
        _ if busy => match (evidence.position, evidence.gil.held) {
            (PositionEvidence::Moved, _) => CpuPython,
            (PositionEvidence::Still, Held::Always) => CpuNativeGil,
            (PositionEvidence::Still, Held::Never) => CpuNative,
            _ => Undecided,
        },
        Evidence { call: None, .. } => Undecided,
        // It goes on in between: only where its Python frame stays is that one wait.
        Evidence { in_slices: true, position, in_own_poll: false, .. }
            if *position != PositionEvidence::Still || evidence.running + evidence.queued > RESTS =>
        {
            Undecided
        }
        Evidence { gil: GilEvidence { held: Held::Always, .. }, .. } => BlockedHoldingGil,
        Evidence { in_own_poll: true, .. } => Idle,
        // The thread that has to release the lock needs the GIL first: one that is being started, or that works for this one.
        Evidence { in_lock: true, gil: GilEvidence { is_kept: true, .. }, .. } => GilVictim,
        Evidence { in_lock: true, .. } => LockWait,
        _ => BlockedSyscall,
    }
}

/// The share of processor time, wanted time included, of a thread that only waits.
const RESTS: f64 = 0.1;

pub(crate) fn sentence(verdict: Verdict, evidence: &Evidence) -> String {
    let at = |before: &str| if evidence.at.is_empty() { String::new() } else { format!("{before}{}", evidence.at) };
    let library = |before: &str| {
        if evidence.library.is_empty() { String::new() } else { format!("{before}{}", evidence.library) }
    };
    let call = evidence.call.as_ref().map_or_else(String::new, |call| {
        let what = if call.what.is_empty() { String::new() } else { format!(" {}", call.what) };
        format!("{}{what}", call.name)
    });
    match verdict {
        Verdict::BlockedSyscall if evidence.in_slices => format!(
            "Blocked: it waits in many short system calls, one of them {call}{}{}.",
            library(", called by "),
            at(", from ")
        ),
        Verdict::BlockedSyscall => {
            let gil = if evidence.gil.held == Held::Unknown { "" } else { "; the GIL is free of it" };
            format!("Blocked in the system call {call}{}{}{gil}.", library(", called by "), at(", from "))
        }
        Verdict::BlockedHoldingGil => format!(
            "Blocked in the system call {call}{}{} with the GIL held: no other Python thread of the process can run.",
            library(", called by "),
            at(", from ")
        ),
        Verdict::CpuPython => format!("Runs Python code{}.", at(", ")),
        Verdict::CpuNative => {
            format!("Computes in native code{}{}; other Python threads can run.", library(" of "), at(" called at "))
        }
        Verdict::CpuNativeGil => format!(
            "Computes in native code{}{} with the GIL held: no other Python thread of the process can run.",
            library(" of "),
            at(" called at ")
        ),
        Verdict::GcPause => format!(
            "Collects garbage (Python's collector, with the GIL held){}: no other Python thread of the process can run.",
            at(", begun at ")
        ),
        Verdict::GilVictim if evidence.gil.holder.is_empty() => format!("Waits for the GIL{}.", at(", at ")),
        Verdict::GilVictim if !evidence.gil.waits => format!(
            "Waits for a lock of Python{}, which no thread can release while the GIL is held by {}.",
            at(", at "),
            evidence.gil.holder
        ),
        Verdict::GilVictim => format!("Waits for the GIL{}; it is held by {}.", at(", at "), evidence.gil.holder),
        Verdict::LockWait => format!("Waits for a lock of Python{}, which another thread has to release.", at(", at ")),
        Verdict::Starved => starved(evidence.queued, &evidence.at),
        Verdict::Idle => "Idle: waits for something to do.".to_owned(),
        Verdict::Native if evidence.running >= 0.5 => {
            format!("A native thread that computes{}.", library(" in "))
        }
        Verdict::Native if call.is_empty() => format!("A native thread{}.", library(" of ")),
        Verdict::Native => format!("A native thread{} that waits in {call}.", library(" of ")),
        Verdict::Stopped => "Stopped by a signal or a debugger.".to_owned(),
        Verdict::Undecided => format!(
            "Runs and waits by turns ({} % of a processor){}; a longer look tells more.",
            percent(evidence.running),
            at(", now at ")
        ),
    }
}

/// What STARVED says. `at` is the innermost line, and may be empty.
pub fn starved(queued: f64, at: &str) -> String {
    let at = if at.is_empty() { String::new() } else { format!(", at {at}") };
    format!(
        "Could run, but got no processor for {} % of the time{at}: the machine, or the quota of its group, is busy.",
        percent(queued)
    )
}

fn percent(share: f64) -> f64 {
    (share * 100.0).clamp(0.0, 100.0).round()
}

#[cfg(test)]
mod tests {
    use super::*;
    use Verdict::*;

    fn waiting() -> Evidence {
        Evidence {
            is_python: true,
            call: Some(CallEvidence { name: "poll".into(), what: "(TCP to 10.0.0.5:5432)".into() }),
            gil: GilEvidence { held: Held::Never, ..GilEvidence::default() },
            position: PositionEvidence::Still,
            at: "app.py:14 in bad".into(),
            library: "libpq (PQexec)".into(),
            ..Evidence::default()
        }
    }

    fn computing(position: PositionEvidence, held: Held) -> Evidence {
        Evidence {
            running: 0.98,
            call: None,
            position,
            gil: GilEvidence { held, ..GilEvidence::default() },
            ..waiting()
        }
    }

    #[test]
    fn each_verdict_has_its_evidence() {
        use PositionEvidence::{Moved, Still, Unknown};
        let rows: Vec<(&str, Evidence, Verdict)> = vec![
            ("a query", waiting(), BlockedSyscall),
            ("a call that keeps the GIL", with(waiting(), |e| e.gil.held = Held::Always), BlockedHoldingGil),
            ("it had the GIL only once", with(waiting(), |e| e.gil.held = Held::Sometimes), BlockedSyscall),
            ("nothing is known of the GIL", with(waiting(), |e| e.gil.held = Held::Unknown), BlockedSyscall),
            ("a loop", computing(Moved, Held::Sometimes), CpuPython),
            ("a loop that has the GIL", computing(Moved, Held::Always), CpuPython),
            ("a regular expression", computing(Still, Held::Always), CpuNativeGil),
            ("zlib", computing(Still, Held::Never), CpuNative),
            ("frames cannot be read", computing(Unknown, Held::Always), Undecided),
            (
                "half a processor, all there was",
                with(computing(Still, Held::Never), |e| (e.running, e.queued) = (0.4, 0.4)),
                CpuNative,
            ),
            ("waits for the GIL", with(waiting(), |e| e.gil.waits = true), GilVictim),
            (
                "waits for the GIL on a busy machine",
                with(waiting(), |e| (e.gil.waits, e.running, e.queued) = (true, 0.01, 0.7)),
                GilVictim,
            ),
            ("a lock", with(waiting(), |e| e.in_lock = true), LockWait),
            (
                "a lock while another thread keeps the GIL",
                with(waiting(), |e| (e.in_lock, e.gil.is_kept) = (true, true)),
                GilVictim,
            ),
            ("a query while another thread keeps the GIL", with(waiting(), |e| e.gil.is_kept = true), BlockedSyscall),
            (
                "an idle loop while another thread keeps the GIL",
                with(waiting(), |e| (e.in_lock, e.in_own_poll, e.gil.is_kept) = (true, true, true)),
                Idle,
            ),
            (
                "a lock under the GIL",
                with(waiting(), |e| (e.in_lock, e.gil.held) = (true, Held::Always)),
                BlockedHoldingGil,
            ),
            ("its own poll", with(waiting(), |e| e.in_own_poll = true), Idle),
            (
                "its own poll, but it computes",
                with(computing(Moved, Held::Always), |e| e.in_own_poll = true),
                CpuPython,
            ),
            ("no processor", with(computing(Moved, Held::Always), |e| (e.running, e.queued) = (0.1, 0.9)), Starved),
            (
                "a busy neighbour, but enough",
                with(computing(Moved, Held::Always), |e| (e.running, e.queued) = (0.5, 0.5)),
                CpuPython,
            ),
            ("not of Python", with(waiting(), |e| e.is_python = false), Native),
            ("stopped", with(waiting(), |e| e.is_stopped = true), Stopped),
            ("neither nor", with(waiting(), |e| e.call = None), Undecided),
            ("waits in slices", with(waiting(), |e| e.in_slices = true), BlockedSyscall),
            (
                "goes on between slices",
                with(waiting(), |e| (e.in_slices, e.position) = (true, PositionEvidence::Moved)),
                Undecided,
            ),
            ("works between slices", with(waiting(), |e| (e.in_slices, e.running) = (true, 0.3)), Undecided),
            (
                "an idle loop that wakes often",
                with(waiting(), |e| {
                    (e.in_slices, e.in_own_poll, e.position) = (true, true, PositionEvidence::Moved);
                }),
                Idle,
            ),
            ("a collection", with(computing(Still, Held::Always), |e| e.collects = true), GcPause),
            ("a collection in a loop", with(computing(Moved, Held::Always), |e| e.collects = true), GcPause),
            (
                "a finalizer that waits",
                with(waiting(), |e| (e.collects, e.gil.held) = (true, Held::Sometimes)),
                BlockedSyscall,
            ),
        ];
        for (name, evidence, expected) in rows {
            assert_eq!(judge(&evidence).0, expected, "{name}");
        }
    }

    fn with(mut evidence: Evidence, change: impl FnOnce(&mut Evidence)) -> Evidence {
        change(&mut evidence);
        evidence
    }

    #[test]
    fn sentences_name_what_is_known() {
        let told = |evidence: &Evidence| judge(evidence).1;
        assert_eq!(
            told(&waiting()),
            "Blocked in the system call poll (TCP to 10.0.0.5:5432), called by libpq (PQexec), from app.py:14 in bad; the GIL is free of it."
        );
        let victim = with(waiting(), |e| {
            e.gil.waits = true;
            e.gil.holder = "thread 77 (pool), at x.py:3 in match".into();
        });
        assert_eq!(
            told(&victim),
            "Waits for the GIL, at app.py:14 in bad; it is held by thread 77 (pool), at x.py:3 in match."
        );
        let starts = with(victim, |e| (e.gil.waits, e.gil.is_kept, e.in_lock) = (false, true, true));
        assert_eq!(
            told(&starts),
            "Waits for a lock of Python, at app.py:14 in bad, which no thread can release while the GIL is held by \
             thread 77 (pool), at x.py:3 in match."
        );
    }

    #[test]
    fn a_verdict_is_written_in_capitals() {
        assert_eq!(serde_json::to_string(&BlockedHoldingGil).expect("plain"), "\"BLOCKED_HOLDING_GIL\"");
    }
}
