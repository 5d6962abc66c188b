//! Diagnoses a thread from one look. Pure: evidence in, a verdict and one sentence out.
//!
//! Questions are asked in the order of their certainty: the kernel's state first, then the GIL, then frames.
use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Verdict {
    /// Waiting in the kernel with the GIL released.
    BlockedSyscall,
    /// Waiting in the kernel with the GIL held: no other Python thread can run.
    BlockedHoldingGil,
    /// Running Python code.
    CpuPython,
    /// Running native code with the GIL released.
    CpuNative,
    /// Running native code with the GIL held.
    CpuNativeGil,
    /// Running Python's garbage collector, which holds the GIL.
    GcPause,
    /// Waiting for the GIL, or for a lock that no thread can release while another one keeps the GIL.
    GilVictim,
    /// Waiting for a Python lock.
    LockWait,
    /// Runnable, but without a CPU.
    Starved,
    /// An event loop or a server waiting for events.
    Idle,
    /// Not a Python thread.
    Native,
    /// Stopped by a signal or a debugger.
    Stopped,
    /// Running and waiting within one look.
    Undecided,
}

impl Verdict {
    /// Whether native code has the CPU, so that a deep look can name its function.
    pub fn computes_natively(self) -> bool {
        matches!(self, Self::CpuNative | Self::CpuNativeGil)
    }
}

/// Findings of one look at a thread.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// Share of the look's time on a CPU.
    pub running: f64,
    /// Share of the look's time waiting for a CPU.
    pub queued: f64,
    pub is_stopped: bool,
    pub is_python: bool,
    /// The system call that the thread is in.
    pub call: Option<CallEvidence>,
    /// Whether each reading found another call: the thread waits in many short ones.
    pub in_slices: bool,
    /// Whether the garbage collector ran while this thread held the GIL.
    pub collects: bool,
    pub gil: GilEvidence,
    pub position: PositionEvidence,
    /// Innermost Python frame, as `shop/orders.py:14 in pay`.
    pub at: String,
    /// Innermost library on the native stack, as `librdkafka (rd_kafka_flush)`; may be empty.
    pub library: String,
    /// Whether a function of Python's locks is on the stack.
    pub in_lock: bool,
    /// Whether the frames are those of an event loop that waits for events.
    pub in_own_poll: bool,
}

#[derive(Clone, Debug, Default)]
pub struct CallEvidence {
    pub name: String,
    /// Descriptor or time that the call waits for, as `TCP to 10.0.0.5:5432` or `for 30 s`; may be empty.
    pub what: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Held {
    /// A free-threaded build, or one whose layout is not known.
    #[default]
    Unknown,
    /// In every sample of this look.
    Always,
    Sometimes,
    Never,
}

#[derive(Clone, Debug, Default)]
pub struct GilEvidence {
    pub held: Held,
    pub waits: bool,
    /// The thread that holds the GIL, as `thread 123 (name), at file:line in function`; empty if it is not known.
    pub holder: String,
    /// Whether that thread held the GIL for the whole look.
    pub is_kept: bool,
}

/// Movement of the innermost frame from sample to sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PositionEvidence {
    #[default]
    Unknown,
    /// Always at the same call.
    Still,
    Moved,
}

/// Returns the verdict on a thread, and the sentence that explains it.
pub fn judge(evidence: &Evidence) -> (Verdict, String) {
    let verdict = decide(evidence);
    (verdict, sentence(verdict, evidence))
}

fn decide(evidence: &Evidence) -> Verdict {
    use Verdict::*;
    // Share of the time in which it had a CPU or needed none.
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

/// Largest share of CPU time, waiting for a CPU included, of a thread that only waits.
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
            "Blocked: waiting in many short system calls, such as {call}{}{}.",
            library(", called by "),
            at(", from ")
        ),
        Verdict::BlockedSyscall => {
            let gil = if evidence.gil.held == Held::Unknown { "" } else { "; the GIL is released" };
            format!("Blocked in the system call {call}{}{}{gil}.", library(", called by "), at(", from "))
        }
        Verdict::BlockedHoldingGil => format!(
            "Blocked in the system call {call}{}{} with the GIL held: no other Python thread in this process can run.",
            library(", called by "),
            at(", from ")
        ),
        Verdict::CpuPython => format!("Running Python code{}.", at(" at ")),
        Verdict::CpuNative => {
            format!("Running native code{}{}; the GIL is released.", library(" of "), at(", called from "))
        }
        Verdict::CpuNativeGil => format!(
            "Running native code{}{}, with the GIL held: no other Python thread in this process can run.",
            library(" of "),
            at(", called from ")
        ),
        Verdict::GcPause => format!(
            "Collecting garbage with the GIL held{}: no other Python thread in this process can run.",
            at(", triggered at ")
        ),
        Verdict::GilVictim if evidence.gil.holder.is_empty() => format!("Waiting for the GIL{}.", at(" at ")),
        Verdict::GilVictim if !evidence.gil.waits => format!(
            "Waiting for a Python lock{}; no thread can release it while the GIL is held by {}.",
            at(" at "),
            evidence.gil.holder
        ),
        Verdict::GilVictim => format!("Waiting for the GIL{}; it is held by {}.", at(" at "), evidence.gil.holder),
        Verdict::LockWait => format!("Waiting for a Python lock{} that another thread must release.", at(" at ")),
        Verdict::Starved => starved(evidence.queued, &evidence.at),
        Verdict::Idle => "Idle: waiting for work.".to_owned(),
        Verdict::Native if evidence.running >= 0.5 => {
            format!("Native thread, running{}.", library(" in "))
        }
        Verdict::Native if call.is_empty() => format!("Native thread{}.", library(" of ")),
        Verdict::Native => format!("Native thread{}, waiting in {call}.", library(" of ")),
        Verdict::Stopped => "Stopped by a signal or a debugger.".to_owned(),
        Verdict::Undecided => format!(
            "Alternates between running and waiting ({} % CPU){}; sample for longer to learn more.",
            percent(evidence.running),
            at(", now at ")
        ),
    }
}

/// Returns the sentence of STARVED. `at` is the innermost line; may be empty.
pub fn starved(queued: f64, at: &str) -> String {
    let at = if at.is_empty() { String::new() } else { format!(", at {at}") };
    format!(
        "Ready to run, but got no CPU for {} % of the time{at}: the machine is busy, or the cgroup's quota is used up.",
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
    #[allow(clippy::too_many_lines, reason = "a table")]
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
            "Blocked in the system call poll (TCP to 10.0.0.5:5432), called by libpq (PQexec), from app.py:14 in bad; the GIL is released."
        );
        let victim = with(waiting(), |e| {
            e.gil.waits = true;
            e.gil.holder = "thread 77 (pool), at x.py:3 in match".into();
        });
        assert_eq!(
            told(&victim),
            "Waiting for the GIL at app.py:14 in bad; it is held by thread 77 (pool), at x.py:3 in match."
        );
        let starts = with(victim, |e| (e.gil.waits, e.gil.is_kept, e.in_lock) = (false, true, true));
        assert_eq!(
            told(&starts),
            "Waiting for a Python lock at app.py:14 in bad; no thread can release it while the GIL is held by \
             thread 77 (pool), at x.py:3 in match."
        );
    }

    #[test]
    fn a_verdict_is_written_in_capitals() {
        assert_eq!(serde_json::to_string(&BlockedHoldingGil).expect("plain"), "\"BLOCKED_HOLDING_GIL\"");
    }
}
