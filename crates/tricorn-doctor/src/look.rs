//! One look at a process: samples of all threads for a short time, then each thread once and thoroughly.
//!
//! ```text
//!   times ── glance ── glance ── … ── glance ── times ── each thread: call, native stack, Python frames, call again
//!             └ where is each innermost frame, who has the GIL? ┘                     └ the same call: they belong together
//! ```
use crate::calls;
use crate::descriptors::Descriptors;
use crate::gathered::{Gathered, Inside, called_by_python, holders, in_words, one_of, short};
use crate::glances::Glances;
use crate::images::Images;
use crate::leaves::Leaves;
use crate::maps::Maps;
use crate::memory::Memory;
use crate::naming;
use crate::native::{Stack, Stacks, Standing};
use crate::procfs::{self, Call, SystemCalls, Times};
use crate::python::frames::{self, Codes, PyFrame, Walked, Walks};
use crate::python::runtime::{GilState, PyThread, Runtime, Unreadable};
use crate::report::{Gil, Interpreter, Library, Look, Native, NativeFrame, Thread};
use crate::trouble::{self, Trouble};
use crate::verdict::{self, Evidence};
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::time::{Duration, Instant};

/// Examines a process. Caches its files, symbols and unwind tables between looks.
pub struct Doctor {
    pub(crate) pid: u32,
    pub(crate) memory: Memory,
    pub(crate) images: Images,
    stacks: Stacks,
    descriptors: Descriptors,
    pub(crate) runtime: Result<Runtime, String>,
    codes: Codes,
    pub(crate) leaves: Leaves,
    pub walks: Walks,
    pub(crate) calls: SystemCalls,
    /// The kernel tells processor time in ticks only.
    is_coarse: bool,
}

/// Halts a thread of this process while it is read. `false`: it did not halt, or continued meanwhile.
pub type Halt<'h> = &'h mut dyn FnMut(u32, &mut dyn FnMut(Standing)) -> bool;
pub type AtGlance<'g> = &'g mut dyn FnMut(&mut Doctor);

impl Doctor {
    /// Opens another process of the same user, or this one.
    pub fn open(pid: u32) -> Result<Self, Trouble> {
        Self::open_with(pid, None)
    }

    /// Opens this process. `call_file` is /proc/thread-self/syscall of its first thread, opened before the user was changed.
    pub fn open_own(call_file: Option<File>) -> Result<Self, Trouble> {
        // What is missing is no process, but what tells of it.
        Self::open_with(std::process::id(), call_file).map_err(|trouble| match trouble {
            Trouble::Gone(_) => Trouble::Forbidden(NO_PROC.to_owned()),
            other => other,
        })
    }

    fn open_with(pid: u32, call_file: Option<File>) -> Result<Self, Trouble> {
        let maps = maps(pid)?;
        let probe = maps.iter().find(|mapping| mapping.readable && mapping.is_file());
        let probe = probe.map(|mapping| mapping.start).ok_or(Trouble::NotPython(pid))?;
        let memory = Memory::open(pid, probe)?;
        let mut images = Images::new(pid, maps);
        let runtime = match Runtime::find(&memory, &mut images, &|| inner_tids(pid)) {
            Ok(runtime) => Ok(runtime),
            Err(Unreadable::NotPython) => return Err(Trouble::NotPython(pid)),
            Err(Unreadable::Unknown(why)) => Err(why),
        };
        let descriptors = Descriptors::new(pid);
        let (stacks, codes, walks) = (Stacks::default(), Codes::default(), Walks::default());
        let calls = SystemCalls::new(pid, call_file);
        let is_coarse = procfs::times(pid, pid).is_none();
        let leaves = Leaves::default();
        Ok(Self { pid, memory, images, stacks, descriptors, runtime, codes, leaves, walks, calls, is_coarse })
    }

    /// Examines all threads except the calling one. Blocks for about `window`.
    pub fn look(&mut self, window: Duration) -> Result<Look, Trouble> {
        self.look_and(window, &mut |_| {})
    }

    /// Examines all threads like [`Self::look`], and calls a function at each sample.
    pub fn look_and(&mut self, window: Duration, at_glance: AtGlance<'_>) -> Result<Look, Trouble> {
        let before = self.samples()?;
        let begin = Instant::now();
        let mut glances = HashMap::new();
        let mut after = before.clone();
        for _ in 0..ROUNDS {
            for _ in 0..GLANCES {
                self.glance(&mut glances);
                self.glance_closer(&mut glances);
                at_glance(self);
                std::thread::sleep(window / GLANCES as u32);
            }
            after = self.samples()?;
            if !self.is_deceptive(&glances, &before, &after, begin.elapsed()) {
                break;
            }
        }
        let elapsed = begin.elapsed();
        // Behind the window: a library that was loaded in it may be what a thread waits in now.
        self.images.renew(maps(self.pid)?);
        let py_threads = self.python_threads();
        let gils = self.gils(&py_threads);
        let inner = self.inner_numbers(&after);
        let by_tid: HashMap<u32, PyThread> = py_threads.iter().map(|thread| (thread.tid, *thread)).collect();
        let mut tids: Vec<u32> = after.keys().copied().collect();
        tids.sort_unstable();
        let mut gathered = Vec::new();
        for tid in tids {
            let python = by_tid.get(inner.get(&tid).unwrap_or(&tid)).copied();
            let gil = python.and_then(|thread| gils.get(&thread.interpreter)).copied();
            let (cpu, queued) = shares(before.get(&tid), after.get(&tid), elapsed);
            gathered.push(self.gather(tid, python, gil, (cpu, queued)));
        }
        let holders = holders(self.pid, &gathered, &gils, &glances);
        let judged = |each: Gathered| {
            let seen = each.python.and_then(|thread| glances.get(&thread.state));
            let holder = each.python.and_then(|thread| holders.get(&thread.interpreter));
            // Where the interpreter is not known, each thread may be one of it.
            each.judged(self.pid, self.runtime.is_ok(), seen, holder)
        };
        let threads = gathered.into_iter().map(judged).collect();
        let forbidden = self.calls.were_refused().then(|| trouble::without_calls(self.pid));
        Ok(Look {
            pid: self.pid,
            command: command(self.pid),
            python: self.interpreter(&gils, &py_threads, &inner),
            seconds: elapsed.as_secs_f64(),
            threads,
            walks: self.walks,
            missing: self.missing(),
            notes: self.notes(forbidden.clone()),
            forbidden: forbidden.unwrap_or_default(),
        })
    }

    /// The same. Those of these threads that compute in native code, or the holders of the GIL that they wait for, are halted for a
    /// moment each, so that the stack of that is told.
    pub fn look_deep(
        &mut self,
        window: Duration,
        tids: &[u32],
        halt: Halt<'_>,
        at_glance: AtGlance<'_>,
    ) -> Result<Look, Trouble> {
        let mut look = self.look_and(window, at_glance)?;
        let holders =
            look.threads.iter().filter(|thread| tids.contains(&thread.tid)).filter_map(|thread| thread.gil.holder);
        let blamed: HashSet<u32> = tids.iter().copied().chain(holders).collect();
        let computes = |thread: &&mut Thread| blamed.contains(&thread.tid) && thread.verdict.computes_natively();
        for thread in look.threads.iter_mut().filter(computes) {
            self.deepen(thread, halt);
        }
        Ok(look)
    }

    /// What is copied while it stands still is unwound when it has gone on.
    fn deepen(&mut self, thread: &mut Thread, halt: Halt<'_>) {
        let mut copied = None;
        let memory = &self.memory;
        let stood = halt(thread.tid, &mut |at| copied = Some((Stack::copy(memory, at.stack), at)));
        let Some((stack, at)) = copied.filter(|_| stood) else { return };
        let mut native = self.native_of(stack, at);
        native.library = native.library.or_else(|| called_by_python(&native.frames));
        let at = thread.application.as_ref().map(short).unwrap_or_default();
        let library = native.library.as_ref().map(|library| in_words(library, true)).unwrap_or_default();
        thread.sentence = verdict::sentence(thread.verdict, &Evidence { at, library, ..Evidence::default() });
        thread.native = native;
    }

    fn samples(&self) -> Result<HashMap<u32, Sample>, Trouble> {
        let tids = procfs::tasks(self.pid).ok_or(Trouble::Gone(self.pid))?;
        let own = own_tid();
        let others = tids.into_iter().filter(|&tid| tid != own);
        Ok(others.filter_map(|tid| Some((tid, self.sample(tid)?))).collect())
    }

    fn sample(&self, tid: u32) -> Option<Sample> {
        let waits = if self.is_coarse { None } else { procfs::waits_before(self.pid, tid) };
        Some(Sample { times: self.times_of(tid)?, waits })
    }

    fn times_of(&self, tid: u32) -> Option<Times> {
        if self.is_coarse { procfs::coarse_times(self.pid, tid) } else { procfs::times(self.pid, tid) }
    }

    pub fn python_threads(&self) -> Vec<PyThread> {
        self.runtime.as_ref().map(|runtime| runtime.threads(&self.memory)).unwrap_or_default()
    }

    /// Returns the frames of one thread. `None`: Python frames cannot be read.
    pub fn frames_of(&mut self, thread: &PyThread) -> Option<Walked> {
        let runtime = self.runtime.as_ref().ok()?;
        Some(frames::walk(runtime, &self.memory, thread.state, &mut self.codes, &mut self.walks))
    }

    /// Returns the frames of a thread with their addresses, outermost first, to compare the calls of two looks.
    pub fn nesting_of(&mut self, thread: &PyThread) -> Vec<(u64, PyFrame)> {
        let Ok(runtime) = &self.runtime else { return Vec::new() };
        frames::nesting(runtime, &self.memory, thread.state, &mut self.codes)
    }

    fn gils(&self, threads: &[PyThread]) -> HashMap<u64, GilState> {
        self.runtime.as_ref().map(|runtime| runtime.gils(&self.memory, threads)).unwrap_or_default()
    }

    fn glance(&self, glances: &mut HashMap<u64, Glances>) {
        let Ok(runtime) = &self.runtime else { return };
        let threads = runtime.threads(&self.memory);
        for thread in &threads {
            let of_thread = glances.entry(thread.state).or_default();
            // A thread that has the GIL before and after has it meanwhile.
            let held = |gil: Option<GilState>| gil.map(|gil| gil.locked && gil.holder == thread.state);
            let first = held(runtime.gil(&self.memory, thread.interpreter));
            of_thread.places.push(frames::place(runtime, &self.memory, thread.state));
            let collects = runtime.collects(&self.memory, thread.interpreter);
            let second = held(runtime.gil(&self.memory, thread.interpreter));
            of_thread.gil_seen += usize::from(first.is_some() && second.is_some());
            of_thread.gil_held += usize::from(first == Some(true) && second == Some(true));
            of_thread.collected += usize::from(collects && first == Some(true) && second == Some(true));
        }
    }

    /// Tells one long call from many short ones at the same place: a loop around a short call is seldom seen elsewhere.
    fn glance_closer(&self, glances: &mut HashMap<u64, Glances>) {
        let Ok(runtime) = &self.runtime else { return };
        for (&state, of_thread) in glances.iter_mut() {
            for _ in 0..CLOSE_GLANCES {
                if !of_thread.keeps_still() {
                    break;
                }
                // All of them are the same so far, so that the first is enough.
                of_thread.places.truncate(1);
                of_thread.places.push(frames::place(runtime, &self.memory, state));
            }
        }
    }

    /// A thread that has the GIL was always at the same place, and may have been there since its processor was taken from it.
    fn is_deceptive(
        &self,
        glances: &HashMap<u64, Glances>,
        before: &HashMap<u32, Sample>,
        after: &HashMap<u32, Sample>,
        elapsed: Duration,
    ) -> bool {
        self.python_threads().iter().any(|thread| {
            let (running, queued) = shares(before.get(&thread.tid), after.get(&thread.tid), elapsed);
            queued >= CONTENDED && running > 0.0 && glances.get(&thread.state).is_some_and(Glances::keeps_still)
        })
    }

    fn gather(&mut self, tid: u32, python: Option<PyThread>, gil: Option<GilState>, times: (f64, f64)) -> Gathered {
        let mut inside = self.inside(tid, gil);
        let mut walked = python.and_then(|thread| self.frames_of(&thread)).unwrap_or_default();
        // What was read of the calls that are over.
        let mut slices: Vec<Inside> = Vec::new();
        let (cpu, queued) = times;
        // A thread that has just woken up is in no call, and may wait for a processor until the next one.
        let woke = |inside: &Inside| inside.call == Call::Running && cpu < 0.5;
        let first = self.times_of(tid);
        // A thread that waits for the GIL asks again every 5 ms: a look in between two waits finds the same stack.
        for _ in 1..ATTEMPTS {
            if woke(&inside) {
                std::thread::sleep(NEXT_CALL);
            } else if inside.call.is_same(&self.calls.of(tid)) {
                break;
            }
            slices.push(std::mem::replace(&mut inside, self.inside(tid, gil)));
            walked = python.and_then(|thread| self.frames_of(&thread)).unwrap_or_default();
        }
        // The kernel counts what a thread waits for a processor when it gets one: of this one nothing is counted yet.
        let is_told = !self.is_coarse && woke(&inside) && slices.iter().all(woke);
        let has_none = is_told && first == self.times_of(tid);
        let queued = if has_none { 1.0 - cpu } else { queued };
        let had_call = slices.iter().any(|slice| slice.described.is_some());
        let in_slices = (woke(&inside) && had_call) || !inside.call.is_same(&self.calls.of(tid));
        if in_slices {
            slices.push(inside);
            inside = one_of(slices);
        }
        let wait_channel = procfs::wait_channel(self.pid, tid);
        let state = procfs::state(self.pid, tid);
        Gathered { tid, state, cpu, queued, inside, in_slices, wait_channel, python, walked }
    }

    /// The system call that a thread is in, and its native stack.
    fn inside(&mut self, tid: u32, gil: Option<GilState>) -> Inside {
        let call = self.calls.of(tid);
        let (native, described) = match call {
            Call::Inside(entered) => {
                let described = calls::describe(&entered, &self.memory, &mut self.descriptors);
                (self.native(entered.stack, entered.program), Some(described))
            }
            Call::Fault(entered) => (self.native(entered.stack, entered.program), None),
            Call::Running => (Native::without(RUNNING), None),
            Call::Forbidden => (Native { forbidden: true, ..Native::without(NOTHING) }, None),
            Call::Unknown => (Native::without(NOTHING), None),
        };
        let waits_for_gil = match call {
            Call::Inside(entered) if entered.number == libc::SYS_futex => match gil {
                Some(gil) => (gil.start..gil.end).contains(&entered.arguments[0]),
                None => {
                    let certain = native.frames.iter().filter(|frame| frame.certain);
                    certain.filter_map(|frame| frame.function.as_deref()).any(naming::takes_gil)
                }
            },
            _ => false,
        };
        Inside { call, described, native, waits_for_gil }
    }

    pub(crate) fn native(&mut self, stack: u64, program: u64) -> Native {
        self.native_of(Stack::copy(&self.memory, stack), Standing::entered(stack, program))
    }

    fn native_of(&mut self, stack: Stack, at: Standing) -> Native {
        let raw = self.stacks.walk(&self.memory, &mut self.images, stack, at);
        let frames: Vec<NativeFrame> = raw
            .iter()
            .map(|frame| {
                let place = self.images.place(frame.lookup());
                NativeFrame {
                    address: frame.address,
                    path: place.path,
                    function: place.function,
                    offset: place.offset,
                    certain: frame.certain,
                }
            })
            .collect();
        let interpreter = self.runtime.as_ref().map(|runtime| runtime.path.as_str()).unwrap_or_default();
        // Up to the interpreter: what is behind it called Python, and was not called by it.
        let is_python = |frame: &&NativeFrame| frame.path != interpreter || interpreter.is_empty();
        let ours: Vec<&NativeFrame> = frames.iter().take_while(is_python).collect();
        let first = ours.iter().position(|frame| !naming::is_plain(&frame.path, interpreter));
        // The function of the library that was called, and not the one that calls the kernel.
        let blamed =
            first.and_then(|first| ours[first..].iter().take_while(|frame| frame.path == ours[first].path).last());
        let library = blamed.map(|frame| Library {
            name: naming::library(&frame.path),
            path: frame.path.clone(),
            function: frame.function.clone(),
        });
        if frames.is_empty() {
            return Native::without(NOT_HERE);
        }
        Native { frames, library, ..Native::default() }
    }

    fn interpreter(
        &self,
        gils: &HashMap<u64, GilState>,
        threads: &[PyThread],
        inner: &HashMap<u32, u32>,
    ) -> Option<Interpreter> {
        let runtime = self.runtime.as_ref().ok()?;
        // The first interpreter's, where there are several: that is the main one's thread.
        let gil = threads.first().and_then(|thread| gils.get(&thread.interpreter));
        let holder =
            gil.filter(|gil| gil.locked).and_then(|gil| threads.iter().find(|thread| thread.state == gil.holder));
        let outer = |thread: &PyThread| inner.iter().find(|(_, number)| **number == thread.tid).map(|(tid, _)| *tid);
        let gil = Gil { locked: gil.map(|gil| gil.locked), holder: holder.and_then(outer) };
        Some(Interpreter { version: format!("3.{}", runtime.minor), path: runtime.path.clone(), gil })
    }

    /// The process's own numbers of its threads, by ours: others in a container.
    fn inner_numbers(&self, threads: &HashMap<u32, Sample>) -> HashMap<u32, u32> {
        let same = procfs::inner_tid(self.pid, self.pid) == self.pid;
        threads.keys().map(|&tid| (tid, if same { tid } else { procfs::inner_tid(self.pid, tid) })).collect()
    }

    /// The steps that are left out because something is forbidden here, or not known: the same sentences at each look.
    fn missing(&self) -> Vec<String> {
        let mut missing: Vec<String> = self.runtime.as_ref().err().cloned().into_iter().collect();
        if self.descriptors.were_refused() {
            missing.push(NO_PEERS.to_owned());
        }
        if self.is_coarse {
            missing.push(NO_QUEUE.to_owned());
        }
        missing
    }

    fn notes(&self, forbidden: Option<String>) -> Vec<String> {
        let mut notes = self.missing();
        notes.extend(forbidden);
        if self.memory.way() != "process_vm_readv" {
            notes.push(format!(
                "Reading memory through {}, because process_vm_readv is not permitted here.",
                self.memory.way()
            ));
        }
        notes
    }
}

/// A thread at the beginning or the end of a look.
#[derive(Clone, Copy, Debug)]
struct Sample {
    times: Times,
    /// See [`procfs::waits_before`].
    waits: Option<u64>,
}

/// Of `elapsed`, what it had a processor, and what it wanted one.
fn shares(before: Option<&Sample>, after: Option<&Sample>, elapsed: Duration) -> (f64, f64) {
    let (Some(before), Some(after)) = (before, after) else { return (0.0, 0.0) };
    let whole = elapsed.as_nanos().max(1) as f64;
    let share = |early: u64, late: u64| (late.saturating_sub(early) as f64 / whole).min(1.0);
    let running = share(before.times.running, after.times.running);
    let never_waited = before.waits.is_some() && before.waits == after.waits;
    let queued = if never_waited { 1.0 - running } else { share(before.times.queued, after.times.queued) };
    (running, queued)
}

pub(crate) fn maps(pid: u32) -> Result<Maps, Trouble> {
    let path = format!("/proc/{pid}/maps");
    let text = std::fs::read(&path).map_err(|error| Trouble::of_file(pid, &path, &error))?;
    if text.is_empty() && !std::path::Path::new(&format!("/proc/{pid}")).exists() {
        return Err(Trouble::Gone(pid));
    }
    Ok(Maps::parse(&String::from_utf8_lossy(&text)))
}

fn inner_tids(pid: u32) -> HashSet<u32> {
    procfs::tasks(pid).unwrap_or_default().into_iter().map(|tid| procfs::inner_tid(pid, tid)).collect()
}

fn command(pid: u32) -> String {
    let bytes = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words = bytes.split(|&byte| byte == 0).map(String::from_utf8_lossy);
    words.collect::<Vec<_>>().join(" ").trim_end().to_owned()
}

fn own_tid() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()
}

/// How often each thread is glanced at within a look.
const GLANCES: usize = 8;

/// How often the window is begun again for a thread that waits for a processor for such a share of it.
const ROUNDS: usize = 4;
const CONTENDED: f64 = 0.2;

/// How often, at each glance, a thread is looked at again that has the GIL and seems to be in one call. They are spread over the
/// look, since a thread whose processor is taken away stands still.
const CLOSE_GLANCES: usize = 32;

/// How often a thread is looked at that goes on while it is looked at.
const ATTEMPTS: usize = 5;
const NEXT_CALL: Duration = Duration::from_millis(1);

const NOTHING: &str = "The kernel does not show its system call.";
const RUNNING: &str = "It was running: the kernel shows the registers of a running thread only to ptrace(2).";
const NO_PROC: &str = "Cannot read /proc/self/maps: proc(5) is not mounted here.";
const NO_PEERS: &str =
    "Peers of sockets are missing: pidfd_getfd(2) is not permitted here, usually by a seccomp profile.";
const NO_QUEUE: &str = "The kernel has no times in /proc/PID/task/TID/schedstat: CPU shares are rough, and threads without a \
    CPU are not reported as STARVED.";
const NOT_HERE: &str = "Native stacks need x86-64 or aarch64.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_never_waited_wanted_a_processor_when_it_had_none() {
        let at = |running, queued, waits| Sample { times: Times { running, queued }, waits };
        let of = |before, after| shares(Some(&before), Some(&after), Duration::from_nanos(100));
        assert_eq!(of(at(5, 7, Some(3)), at(25, 7, Some(3))), (0.2, 0.8), "the kernel has not counted it yet");
        assert_eq!(of(at(5, 7, Some(3)), at(25, 17, Some(4))), (0.2, 0.1), "it has waited for something else");
        assert_eq!(of(at(5, 7, None), at(25, 17, None)), (0.2, 0.1), "it waits");
        assert_eq!(shares(None, Some(&at(5, 7, None)), Duration::ZERO), (0.0, 0.0));
    }
}
