//! The thread that looks at what holds up an event loop, or at requests that take long: where their threads are in Python and in C.
//!
//! A look takes tens of milliseconds, and the first one reads symbols from disk: the monitor has deadlines to keep. The thread is made
//! for the first look. What it reads it asks the kernel for (`tricorn-doctor`), so that it waits neither for the GIL nor for the
//! thread that it looks at.
use super::packages::{Origin, Packages};
use crate::stack_samples::StackSample;
use crate::wait_sites::{PoolWait, WaitSite, waits_in};
use rustix::fd::OwnedFd;
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;
use tricorn_doctor::{Doctor, PyFrame, PyThread, Standing, Thread, is_loop};
use tricorn_sys::clock::{self, MILLI};
use tricorn_sys::halt::Halter;
use tricorn_sys::signals::{self, ThreadId};

/// How long a look takes at least: the shares of processor time are of so long.
const WINDOW: Duration = Duration::from_nanos(20 * MILLI);
/// The share of a look without a CPU from which on a thread is taken for one that waits for it.
const STARVED: f64 = 0.5;
/// How far a source file is read.
const SOURCE: u64 = 4 << 20;
/// Most characters of a line of source.
const LINE: usize = 120;

/// What a look may use besides what any process may read of itself.
#[derive(Debug, Clone, Default)]
pub struct Means {
    /// Where libraries wait for room in a pool.
    pub sites: Arc<[WaitSite]>,
    /// /proc/thread-self/syscall of the first thread, opened while that was permitted.
    pub call_file: Option<Arc<OwnedFd>>,
    /// A thread that computes in native code may be halted by a signal.
    pub deep: bool,
}

/// What one look has found of a thread.
#[derive(Debug)]
pub struct Finding {
    /// Of the episode that it was asked for.
    pub number: u64,
    pub thread: Thread,
    /// The thread that keeps the GIL from it: that one is to blame.
    pub holder: Option<Box<Thread>>,
    /// The line of the application to blame, where it can be read.
    pub source: String,
    /// The steps that were left out, in sentences: always the same ones for the same reasons.
    pub missing: String,
    /// When the look was over.
    pub at: u64,
    /// The pool in which it waits for room.
    pub pool: Option<PoolWait>,
    /// It was at another callback, greenlet or request than at the beginning: no call of them holds up the others.
    pub turns: bool,
    /// Of the library that it is in.
    pub origin: Origin,
}

/// A request, and its thread.
#[derive(Debug, Clone, Copy)]
pub struct Asked {
    pub slot: usize,
    pub started: u64,
    pub thread: ThreadId,
}

#[derive(Debug)]
enum Order {
    /// Threads, by the numbers of their episodes.
    Look(Vec<(u64, ThreadId)>),
    Census(Vec<Asked>),
}

#[derive(Debug)]
pub enum Answer {
    Found(Box<Finding>),
    /// Which of the requests asked about wait for room in a pool, if they still run.
    Census(Vec<StackSample>),
}

#[derive(Debug)]
pub struct Examiner {
    means: Means,
    link: Option<(Sender<Order>, Receiver<Answer>)>,
}

impl Finding {
    /// What a look at a thread has found, and nothing besides.
    pub fn new(number: u64, thread: Thread, at: u64) -> Finding {
        Finding {
            number,
            thread,
            holder: None,
            source: String::new(),
            missing: String::new(),
            at,
            pool: None,
            turns: false,
            origin: Origin::default(),
        }
    }

    /// The thread whose line and library are to be named.
    pub fn blamed(&self) -> &Thread {
        self.holder.as_deref().unwrap_or(&self.thread)
    }

    /// One call held up the thread. A thread that got no CPU cannot go on to its next callback, however short this one is.
    pub fn is_one_call(&self) -> bool {
        !self.turns && self.thread.queued < STARVED
    }

    /// A module is being imported.
    pub fn imports(&self) -> bool {
        self.thread.python.iter().any(|frame| frame.file.starts_with("<frozen importlib"))
    }
}

impl Examiner {
    pub fn new(means: Means) -> Examiner {
        Examiner { means, link: None }
    }

    /// Has these threads looked at, in one look. What stands in the way of that is told with the findings.
    pub fn ask(&mut self, threads: Vec<(u64, ThreadId)>) {
        self.send(Order::Look(threads));
    }

    /// Has it found out which of these requests wait for room in a pool.
    pub fn ask_census(&mut self, requests: Vec<Asked>) {
        self.send(Order::Census(requests));
    }

    fn send(&mut self, order: Order) {
        if self.link.is_none() {
            self.link = start(self.means.clone());
        }
        if let Some((orders, _)) = &self.link {
            let _ = orders.send(order);
        }
    }

    /// One that looks at nothing.
    #[cfg(test)]
    pub fn idle() -> Examiner {
        Examiner { means: Means::default(), link: Some((channel().0, channel().1)) }
    }

    /// What the next look has found, if one has ended.
    pub fn take(&self) -> Option<Answer> {
        self.link.as_ref().and_then(|(_, found)| found.try_recv().ok())
    }
}

fn start(means: Means) -> Option<(Sender<Order>, Receiver<Answer>)> {
    let (orders, inbox) = channel::<Order>();
    let (outbox, found) = channel();
    let run = move || {
        signals::block_others();
        let mut looker =
            Looker { doctor: Err(String::new()), depth: Depth::of(&means), means, packages: Packages::default() };
        for order in &inbox {
            if looker.follow(order).into_iter().any(|answer| outbox.send(answer).is_err()) {
                return;
            }
        }
    };
    std::thread::Builder::new().name("tricorn-doctor".into()).spawn(run).ok()?;
    Some((orders, found))
}

/// Lives on its own thread.
struct Looker {
    means: Means,
    /// Or why there is none.
    doctor: Result<Doctor, String>,
    depth: Depth,
    packages: Packages,
}

/// Whether threads may be halted.
enum Depth {
    /// It was not asked for.
    Plain,
    /// The application has another use for the signal.
    Taken,
    Deep(Halter),
}

impl Depth {
    fn of(means: &Means) -> Depth {
        match means.deep.then(Halter::install) {
            None => Depth::Plain,
            Some(None) => Depth::Taken,
            Some(Some(halter)) => Depth::Deep(halter),
        }
    }
}

impl Looker {
    fn follow(&mut self, order: Order) -> Vec<Answer> {
        if self.doctor.is_err() {
            // What is in the way may be gone by the next time: there may have been no descriptor left.
            let kept = self.means.call_file.as_ref().and_then(|file| file.try_clone().ok()).map(File::from);
            self.doctor = Doctor::open_own(kept).map_err(|trouble| trouble.to_string());
        }
        let doctor = match (&mut self.doctor, &order) {
            (Ok(doctor), _) => doctor,
            (Err(why), Order::Look(threads)) => return unseen(threads, why),
            // Requests of which nothing is known wait for no pool.
            (Err(_), Order::Census(_)) => return Vec::new(),
        };
        match order {
            Order::Look(threads) => examine(doctor, &self.depth, &self.means.sites, &mut self.packages, &threads),
            Order::Census(requests) => vec![Answer::Census(census(doctor, &self.means.sites, &requests))],
        }
    }
}

const TAKEN: &str = "Native stacks of threads that compute are not told: doctor_deep needs the signal SIGRTMIN+10, which the \
    application uses.";

fn unseen(threads: &[(u64, ThreadId)], why: &str) -> Vec<Answer> {
    let (at, missing) = (clock::now(), why.to_owned());
    let finding = |&(number, thread): &(u64, ThreadId)| {
        let finding = Finding::new(number, Thread::unseen(thread as u32, why), at);
        Answer::Found(Box::new(Finding { missing: missing.clone(), ..finding }))
    };
    threads.iter().map(finding).collect()
}

fn examine(
    doctor: &mut Doctor,
    depth: &Depth,
    sites: &[WaitSite],
    packages: &mut Packages,
    threads: &[(u64, ThreadId)],
) -> Vec<Answer> {
    let tids: Vec<u32> = threads.iter().map(|(_, thread)| *thread as u32).collect();
    let mut before = nestings(doctor, &tids);
    let mut turns = vec![false; tids.len()];
    // At each glance, since a thread that goes round may be at the same again when the look is over.
    let mut compare = |doctor: &mut Doctor| {
        for ((turns, before), now) in turns.iter_mut().zip(&mut before).zip(nestings(doctor, &tids)) {
            *turns |= takes_turns(before, &now);
            // One that was seen between two callbacks tells nothing.
            if now.len() > before.len() {
                *before = now;
            }
        }
    };
    let looked = match depth {
        Depth::Deep(halter) => doctor.look_deep(WINDOW, &tids, &mut |tid, read| halt(halter, tid, read), &mut compare),
        Depth::Plain | Depth::Taken => doctor.look_and(WINDOW, &mut compare),
    };
    compare(doctor);
    let look = match looked {
        Ok(look) => look,
        Err(trouble) => return unseen(threads, &trouble.to_string()),
    };
    let at = clock::now();
    let mut found = Vec::new();
    for (index, &(number, tid)) in threads.iter().enumerate() {
        let thread_of = |tid: u32| look.threads.iter().find(|each| each.tid == tid).cloned();
        let Some(thread) = thread_of(tid as u32) else {
            found.extend(unseen(&[(number, tid)], "the thread was gone when it was looked at."));
            continue;
        };
        let holder = thread.gil.holder.and_then(thread_of).map(Box::new);
        let place = holder.as_deref().unwrap_or(&thread).application.as_ref();
        let source = place.map(|frame| line_of(&frame.file, frame.line as usize));
        let forbidden = Some(look.forbidden.as_str()).filter(|_| thread.native.forbidden);
        let taken = Some(TAKEN).filter(|_| matches!(depth, Depth::Taken));
        let missing: Vec<&str> = look.missing.iter().map(String::as_str).chain(forbidden).chain(taken).collect();
        found.push(Answer::Found(Box::new(Finding {
            number,
            source: source.unwrap_or_default(),
            missing: missing.join(" "),
            at,
            pool: waits_in(sites, &thread.python),
            turns: turns[index],
            origin: packages.origin(&holder.as_deref().unwrap_or(&thread).native),
            holder,
            thread,
        })));
    }
    found
}

fn halt(halter: &Halter, tid: u32, read: &mut dyn FnMut(Standing)) -> bool {
    let Ok(thread) = ThreadId::try_from(tid) else { return false };
    halter.halt(thread, &mut |at| {
        let link = cfg!(target_arch = "aarch64").then_some(at.link);
        read(Standing { program: at.program, stack: at.stack, frame: Some(at.frame), link });
    })
}

type Nesting = Vec<(u64, PyFrame)>;

fn nestings(doctor: &mut Doctor, tids: &[u32]) -> Vec<Nesting> {
    let known: HashMap<u32, PyThread> = doctor.python_threads().into_iter().map(|each| (each.tid, each)).collect();
    tids.iter().map(|tid| known.get(tid).map(|thread| doctor.nesting_of(thread)).unwrap_or_default()).collect()
}

/// Whether these are frames, the outermost first, of two callbacks of one loop, or of two greenlets.
fn takes_turns(before: &Nesting, after: &Nesting) -> bool {
    let is_same = |(one, other): &(&(u64, PyFrame), &(u64, PyFrame))| {
        one.0 == other.0 && one.1.function == other.1.function && one.1.file == other.1.file
    };
    let common = before.iter().zip(after).take_while(is_same).count();
    let goes_on = common < before.len() && common < after.len();
    goes_on && common.checked_sub(1).is_none_or(|last| is_loop(&before[last].1.file))
}

fn census(doctor: &mut Doctor, sites: &[WaitSite], requests: &[Asked]) -> Vec<StackSample> {
    let known: HashMap<u32, PyThread> = doctor.python_threads().into_iter().map(|each| (each.tid, each)).collect();
    let samples = requests.iter().filter_map(|asked| {
        let frames = doctor.frames_of(known.get(&(asked.thread as u32))?)?.frames;
        let pool = waits_in(sites, &frames);
        Some(StackSample { slot: asked.slot, started: asked.started, at: clock::now(), frames, pool })
    });
    samples.collect()
}

/// A line of a file, without what stands around it; empty if there is none.
fn line_of(file: &str, number: usize) -> String {
    let Ok(file) = File::open(file) else { return String::new() };
    let line = BufReader::new(file.take(SOURCE)).lines().nth(number.saturating_sub(1));
    line.and_then(Result::ok).map(|line| line.trim().chars().take(LINE).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(frames: &[(u64, &str)]) -> Nesting {
        let frame = |(address, file): &(u64, &str)| {
            (*address, PyFrame { file: (*file).to_owned(), function: "f".into(), line: *address as i32 })
        };
        frames.iter().map(frame).collect()
    }

    #[test]
    fn callbacks_of_one_loop_take_turns_and_the_calls_of_one_callback_do_not() {
        let (main, run) = ((1, "/bin/tricorn"), (2, "/lib/asyncio/events.py"));
        let task = |address| nested(&[main, run, (address, "/srv/app.py")]);
        assert!(takes_turns(&task(7), &task(8)), "the same line of another task");
        assert!(!takes_turns(&task(7), &task(7)));
        let inside = |address| nested(&[main, run, (7, "/srv/app.py"), (address, "/srv/lib.py")]);
        assert!(!takes_turns(&inside(8), &inside(9)), "one task that calls another function");
        assert!(!takes_turns(&nested(&[main, run]), &nested(&[main, run])), "a callback without a frame of Python");
        assert!(!takes_turns(&nested(&[main, run]), &task(7)), "seen between two of them");
        let greenlet = |address| nested(&[(address, "/srv/app.py")]);
        assert!(takes_turns(&greenlet(7), &greenlet(8)));
        assert!(!takes_turns(&greenlet(7), &Vec::new()), "not read");
    }

    #[test]
    fn a_line_of_source_is_read_where_it_is() {
        let here = format!("{}/src/examiner.rs", env!("CARGO_MANIFEST_DIR"));
        assert!(line_of(&here, 1).starts_with("//! The thread that looks"));
        assert_eq!(line_of(&here, 1_000_000), "");
        assert_eq!(line_of("/nowhere", 1), "");
    }
}
