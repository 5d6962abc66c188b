//! Reads the state, CPU time and system call of threads from /proc.
use serde::Serialize;
use std::cell::Cell;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;

/// Lists the threads of a process in the kernel's order.
pub fn tasks(pid: u32) -> Option<Vec<u32>> {
    let entries = fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    let mut tasks: Vec<u32> = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
    tasks.sort_unstable();
    Some(tasks)
}

fn of_task(pid: u32, tid: u32, file: &str) -> Option<String> {
    let bytes = fs::read(format!("/proc/{pid}/task/{tid}/{file}")).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

pub fn name(pid: u32, tid: u32) -> String {
    of_task(pid, tid, "comm").unwrap_or_default().trim_end().to_owned()
}

/// Returns the state of a thread: R, S, D, T, Z and the like, or `?` if it is gone.
pub fn state(pid: u32, tid: u32) -> char {
    of_task(pid, tid, "stat").and_then(|text| state_of(&text)).unwrap_or('?')
}

/// The name of a program may hold spaces and parentheses: what counts is behind the last one.
fn state_of(stat: &str) -> Option<char> {
    stat.rsplit_once(')')?.1.trim_start().chars().next()
}

/// Returns the kernel function in which the thread sleeps; empty if it does not sleep, or if the kernel hides it.
pub fn wait_channel(pid: u32, tid: u32) -> String {
    let text = of_task(pid, tid, "wchan").unwrap_or_default();
    if text.trim() == "0" { String::new() } else { text.trim().to_owned() }
}

/// Returns the thread id inside the process's own pid namespace.
pub fn inner_tid(pid: u32, tid: u32) -> u32 {
    let status = of_task(pid, tid, "status").unwrap_or_default();
    field(&status, "NSpid:").and_then(|tids| tids.split_whitespace().last()?.parse().ok()).unwrap_or(tid)
}

/// A line of `status`, without its name.
fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

/// Nanoseconds on a processor, and in its queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    pub running: u64,
    pub queued: u64,
}

/// `None`: the thread is gone, or the kernel does not keep these statistics.
pub fn times(pid: u32, tid: u32) -> Option<Times> {
    let text = of_task(pid, tid, "schedstat")?;
    let mut words = text.split_whitespace().map(str::parse);
    let (running, queued, slices) = (words.next()?.ok()?, words.next()?.ok()?, words.next()?.ok()?);
    // A kernel that does not count writes noughts.
    (running | queued | slices != 0_u64).then_some(Times { running, queued })
}

/// How often the thread has given up its processor to wait for something; `None` if it waits now, or if that is not told.
///
/// The kernel counts the wait for a processor when it is over. A thread that wants one, and has waited for nothing else since it
/// wanted one before, has wanted one all the time.
pub fn waits_before(pid: u32, tid: u32) -> Option<u64> {
    waits_before_of(&of_task(pid, tid, "status")?)
}

fn waits_before_of(status: &str) -> Option<u64> {
    let wants = field(status, "State:")?.starts_with('R');
    field(status, "voluntary_ctxt_switches:")?.parse().ok().filter(|_| wants)
}

/// [`times`] in steps of a clock tick, without the time in a queue: for kernels (and sandboxes) that do not tell more.
pub fn coarse_times(pid: u32, tid: u32) -> Option<Times> {
    let ticks = ticks_of(&of_task(pid, tid, "stat")?)?;
    Some(Times { running: ticks * (1_000_000_000 / rustix::param::clock_ticks_per_second().max(1)), queued: 0 })
}

/// In user space and in the kernel: the 14th and 15th field, the third of which is the state.
fn ticks_of(stat: &str) -> Option<u64> {
    let mut words = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    Some(words.next()?.parse::<u64>().ok()? + words.next()?.parse::<u64>().ok()?)
}

/// A system call as the kernel tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Entered {
    pub number: i64,
    pub arguments: [u64; 6],
    pub stack: u64,
    pub program: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// On a processor, or about to be.
    Running,
    Inside(Entered),
    /// It waits in the kernel, in no system call: for a page of a file, say.
    Fault(Entered),
    /// Not told: it is forbidden.
    Forbidden,
    /// Not told: the thread is gone.
    Unknown,
}

impl Call {
    /// Whether a stack that was read in between is one of both. A wait that begins again, as for the GIL every 5 ms, has the same
    /// registers, and other arguments.
    pub fn is_same(&self, later: &Self) -> bool {
        match (self, later) {
            (Self::Inside(one), Self::Inside(other)) => {
                (one.number, one.stack, one.program) == (other.number, other.stack, other.program)
            }
            (one, other) => one == other,
        }
    }
}

/// Which system calls the threads of a process are in.
///
/// A process that has changed its user may not open these files, not even its own. One that it had opened before can still be read.
pub struct SystemCalls {
    pid: u32,
    /// Of the first thread, whose number is that of the process.
    kept: Option<File>,
    refused: Cell<bool>,
}

impl SystemCalls {
    pub fn new(pid: u32, kept: Option<File>) -> Self {
        Self { pid, kept, refused: Cell::new(false) }
    }

    pub fn of(&self, tid: u32) -> Call {
        let read = match &self.kept {
            Some(file) if tid == self.pid => read_again(file),
            _ => fs::read(format!("/proc/{}/task/{tid}/syscall", self.pid)),
        };
        match read {
            Ok(bytes) => parse_call(&String::from_utf8_lossy(&bytes)),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                self.refused.set(true);
                Call::Forbidden
            }
            Err(_) => Call::Unknown,
        }
    }

    /// Whether any was forbidden so far.
    pub fn were_refused(&self) -> bool {
        self.refused.get()
    }
}

fn read_again(file: &File) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; MOST_CALL];
    let length = file.read_at(&mut bytes, 0)?;
    bytes.truncate(length);
    Ok(bytes)
}

/// A number, six arguments and two registers in hexadecimal.
const MOST_CALL: usize = 256;

fn parse_call(text: &str) -> Call {
    let mut words = text.split_whitespace();
    let Some(first) = words.next() else { return Call::Unknown };
    if first == "running" {
        return Call::Running;
    }
    let Ok(number) = first.parse::<i64>() else { return Call::Unknown };
    let rest: Option<Vec<u64>> =
        words.map(|word| u64::from_str_radix(word.trim_start_matches("0x"), 16).ok()).collect();
    match rest.as_deref() {
        Some(&[a, b, c, d, e, f, stack, program]) => {
            Call::Inside(Entered { number, arguments: [a, b, c, d, e, f], stack, program })
        }
        Some(&[stack, program]) => Call::Fault(Entered { number, arguments: [0; 6], stack, program }),
        _ => Call::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_has_a_number_six_arguments_and_two_registers() {
        let text = "7 0x7ffc1 0x2 0xffffffffffffffff 0x0 0x8 0x0 0x7ffd92a38 0x7f2a3c0b1\n";
        let Call::Inside(call) = parse_call(text) else { panic!("{text}") };
        assert_eq!(
            (call.number, call.arguments[2], call.stack, call.program),
            (7, u64::MAX, 0x7_ffd9_2a38, 0x7_f2a3_c0b1)
        );
        assert_eq!(parse_call("running\n"), Call::Running);
        assert!(matches!(parse_call("-1 0x7ffd 0x7f00\n"), Call::Fault(Entered { stack: 0x7ffd, .. })));
        for odd in ["", "7 0x1", "seven", "7 0xzz 0x0 0x0 0x0 0x0 0x0 0x0 0x0"] {
            assert_eq!(parse_call(odd), Call::Unknown, "{odd}");
        }
    }

    #[test]
    fn a_wait_that_begins_again_is_the_same_call() {
        let wait = |word: u64, stack: u64| {
            Call::Inside(Entered { number: 202, arguments: [word, 0, 0, 0, 0, 0], stack, program: 77 })
        };
        assert!(wait(16, 4096).is_same(&wait(20, 4096)));
        assert!(!wait(16, 4096).is_same(&wait(16, 4080)));
        assert!(!wait(16, 4096).is_same(&Call::Running));
        assert!(Call::Running.is_same(&Call::Running));
    }

    #[test]
    fn the_state_stands_behind_a_name_that_may_hold_parentheses() {
        assert_eq!(state_of("12 (a) R (b)) S 1 2"), Some('S'));
        assert_eq!(state_of("nothing"), None);
        assert_eq!(ticks_of("12 (a) R (b)) S 1 1 1 0 -1 4194560 900 0 3 0 70 8 0 0 20"), Some(78));
        assert_eq!(ticks_of("12 (a) S 1"), None);
    }

    #[test]
    fn waits_are_counted_of_a_thread_that_wants_a_processor() {
        let status = |state: &str| format!("Name:\tState:\nState:\t{state}\nvoluntary_ctxt_switches:\t12\nnon{REST}");
        const REST: &str = "voluntary_ctxt_switches:\t340\n";
        assert_eq!(waits_before_of(&status("R (running)")), Some(12));
        assert_eq!(waits_before_of(&status("S (sleeping)")), None);
        assert_eq!(["", "State:\tR (running)\n", REST].map(waits_before_of), [None; 3]);
    }

    #[test]
    fn our_own_times_are_told_both_ways() {
        let pid = std::process::id();
        let coarse = coarse_times(pid, pid).expect("ours");
        assert_eq!(coarse.queued, 0);
        if let Some(exact) = times(pid, pid) {
            assert!(coarse.running <= exact.running + 1_000_000_000, "{coarse:?} {exact:?}");
        }
    }

    #[test]
    fn a_file_that_was_kept_tells_the_call_again_and_again() {
        let pid = std::process::id();
        let calls = SystemCalls::new(pid, File::open(format!("/proc/{pid}/task/{pid}/syscall")).ok());
        for _ in 0..2 {
            // The first thread of a test waits for the others, or has not come to it.
            assert!(matches!(calls.of(pid), Call::Inside(_) | Call::Running | Call::Fault(_)), "{:?}", calls.of(pid));
        }
        assert!(!calls.were_refused());
    }
}
