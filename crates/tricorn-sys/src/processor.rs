//! Whether a thread of this process gets a processor, and what a process has had of it.
use super::signals::ThreadId;
use std::io::Read;

/// Processor time of a thread, in nanoseconds; `None` where the system does not tell.
#[cfg(target_os = "linux")]
pub fn time_of(thread: ThreadId) -> Option<u64> {
    // The clock id that pthread_getcpuclockid(3) makes of a thread id: its complement, "per thread" and "scheduler".
    read((!(thread as libc::clockid_t) << 3) | 6)
}

/// Processor time of a process, not only of ours, in nanoseconds; `None`: it is gone, or the system does not tell.
#[cfg(target_os = "linux")]
pub fn time_of_process(pid: u64) -> Option<u64> {
    // The same as clock_getcpuclockid(3) makes it, without "per thread". The clock of pid 0 would be that of the caller.
    let pid = libc::clockid_t::try_from(pid).ok().filter(|pid| *pid > 0)?;
    read((!pid << 3) | 2)
}

#[cfg(not(target_os = "linux"))]
pub fn time_of_process(_: u64) -> Option<u64> {
    None
}

#[cfg(target_os = "linux")]
fn read(clock: libc::clockid_t) -> Option<u64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid and writable; a clock that is not there fails with EINVAL and touches nothing.
    let result = unsafe { libc::clock_gettime(clock, &mut time) };
    (result == 0).then(|| time.tv_sec as u64 * crate::clock::SECOND + time.tv_nsec as u64)
}

#[cfg(not(target_os = "linux"))]
pub fn time_of(_: ThreadId) -> Option<u64> {
    None
}

/// For how long a thread has wanted a processor and had none, in nanoseconds; `None` where the system does not tell.
pub fn delay_of(thread: ThreadId) -> Option<u64> {
    let mut room = [0; 128];
    let told = told_of(thread, "schedstat", &mut room)?;
    std::str::from_utf8(told).ok()?.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Whether a thread runs or would, had it a processor: it waits for nothing else.
pub fn is_wanted_by(thread: ThreadId) -> bool {
    let mut room = [0; 1024];
    let stat = told_of(thread, "stat", &mut room);
    stat.and_then(state) == Some(b'R')
}

/// The third field of `stat`. The second is the name, in parentheses, which may hold anything.
fn state(stat: &[u8]) -> Option<u8> {
    let name = stat.iter().rposition(|byte| *byte == b')')?;
    stat.get(name + 2).copied()
}

/// What /proc tells of a thread, by one read: such a file is made as a whole when it is read from its beginning, and is short.
fn told_of<'r>(thread: ThreadId, what: &str, room: &'r mut [u8]) -> Option<&'r [u8]> {
    let mut file = std::fs::File::open(format!("/proc/self/task/{thread}/{what}")).ok()?;
    let length = file.read(room).ok()?;
    room.get(..length)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::super::signals::this_thread;
    use super::*;
    use std::sync::mpsc;
    use std::time::{Duration, Instant};

    #[test]
    fn a_process_has_a_clock_and_none_has_none() {
        let before = time_of_process(u64::from(std::process::id())).expect("ours");
        let own = crate::clock::process_cpu();
        let after = time_of_process(u64::from(std::process::id())).expect("ours");
        assert!(before <= own && own <= after, "{before} {own} {after}");
        assert!(time_of_process(1).is_some(), "that of another");
        assert_eq!([0, u64::from(u32::MAX), u64::MAX].map(time_of_process), [None; 3]);
    }

    #[test]
    fn the_state_stands_behind_a_name_that_may_hold_anything() {
        assert_eq!(state(b"7 (a) R (b) S 1 2"), Some(b'S'));
        assert_eq!([state(b""), state(b"7 (a)"), state(b"7 a R")], [None; 3]);
    }

    #[test]
    fn a_thread_that_computes_is_told_from_one_that_waits() {
        let (tell, told) = mpsc::channel();
        let (stop, stopped) = mpsc::channel::<()>();
        let sleeper = std::thread::spawn(move || {
            tell.send(this_thread()).expect("a receiver");
            let _ = stopped.recv();
        });
        let sleeping = told.recv().expect("a thread");
        while is_wanted_by(sleeping) {
            std::thread::yield_now();
        }
        let before = (time_of(this_thread()), time_of(sleeping));
        while time_of(this_thread()) < before.0.map(|time| time + 2_000_000) {}
        assert!(is_wanted_by(this_thread()));
        let slept = time_of(sleeping).zip(before.1).map(|(now, before)| now - before);
        assert!(slept.is_some_and(|time| time < 1_000_000), "{slept:?}");
        drop(stop);
        sleeper.join().expect("it ends");
        // It is joined a moment before the system has forgotten it.
        let deadline = Instant::now() + Duration::from_secs(60);
        while time_of(sleeping).is_some() {
            assert!(Instant::now() < deadline, "a thread that is gone has processor time");
            std::thread::yield_now();
        }
        assert!(!is_wanted_by(sleeping));
    }
}
