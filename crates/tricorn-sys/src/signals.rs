//! Signals to and of threads.
//!
//! Two realtime signals are the watchdog's. Their numbers are known to `python/tricorn/workers/watch.py`, which installs
//! their handlers; without a handler they are not sent, for they would end the process.
use std::sync::atomic::AtomicI32;

/// Names a thread of this process to [`send`]; 0 is none.
pub type ThreadId = i32;
pub type AtomicThreadId = AtomicI32;

/// What a thread does to itself. Blocked, such a fault ends the process without a handler (sigprocmask(2)), and
/// faulthandler could not say where it was.
///
/// SIGABRT is none of them: abort(3) unblocks it, and one that the arbiter sends is for the main thread.
const FAULTS: [i32; 6] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP, libc::SIGSYS];

/// Blocks every signal on the calling thread but its own faults, so that the kernel delivers them where Python looks for them.
pub fn block_others() {
    // SAFETY: `sigfillset` initialises the set it is given; `sigdelset` and `pthread_sigmask` read it, and the latter changes
    // only the calling thread's mask. The pointers are valid for the calls, and a null third argument is allowed.
    unsafe {
        let mut set = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
        libc::sigfillset(set.as_mut_ptr());
        for fault in FAULTS {
            libc::sigdelset(set.as_mut_ptr(), fault);
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut());
    }
}

/// Makes a thread write its stack into the pipe to the arbiter, whichever thread holds the GIL.
#[cfg(target_os = "linux")]
pub fn stack_signal() -> Option<i32> {
    Some(libc::SIGRTMIN() + 5)
}

/// Makes the main thread look whether its call is late.
#[cfg(target_os = "linux")]
pub fn late_signal() -> Option<i32> {
    Some(libc::SIGRTMIN() + 6)
}

/// Has a thread stand still while its stack is read, with `doctor_deep` (`halt.rs`). Python knows nothing of it.
#[cfg(target_os = "linux")]
pub fn halt_signal() -> Option<i32> {
    Some(libc::SIGRTMIN() + 10)
}

/// There are no realtime signals.
#[cfg(not(target_os = "linux"))]
pub fn stack_signal() -> Option<i32> {
    None
}

/// There are no realtime signals.
#[cfg(not(target_os = "linux"))]
pub fn late_signal() -> Option<i32> {
    None
}

/// The calling thread.
#[cfg(target_os = "linux")]
pub fn this_thread() -> ThreadId {
    rustix::thread::gettid().as_raw_nonzero().get()
}

/// Any thread; no signal can be sent to it.
#[cfg(not(target_os = "linux"))]
pub fn this_thread() -> ThreadId {
    1
}

/// Sends a signal to one thread of this process, if that signal has a handler. Whether it was sent.
#[cfg(target_os = "linux")]
pub fn send(thread: ThreadId, signal: i32) -> bool {
    if thread <= 0 || !is_handled(signal) {
        return false;
    }
    let process = rustix::process::getpid().as_raw_nonzero().get();
    // SAFETY: plain numbers. A thread that is gone is ESRCH; one that got its number since is one of this process, and the
    // handler does no harm there.
    unsafe { libc::syscall(libc::SYS_tgkill, process, thread, signal) == 0 }
}

#[cfg(not(target_os = "linux"))]
pub fn send(_thread: ThreadId, _signal: i32) -> bool {
    false
}

/// Whether a signal that was sent to this thread was not delivered yet (proc(5), SigPnd). It reads a file of /proc.
#[cfg(target_os = "linux")]
pub fn is_pending(thread: ThreadId, signal: i32) -> bool {
    let Ok(status) = std::fs::read_to_string(format!("/proc/self/task/{thread}/status")) else { return false };
    let set = status.lines().find_map(|line| line.strip_prefix("SigPnd:"));
    let set = set.and_then(|set| u64::from_str_radix(set.trim(), 16).ok());
    set.is_some_and(|set| set >> (signal - 1) & 1 == 1)
}

#[cfg(not(target_os = "linux"))]
pub fn is_pending(_thread: ThreadId, _signal: i32) -> bool {
    false
}

#[cfg(target_os = "linux")]
fn is_handled(signal: i32) -> bool {
    let mut action = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: a null second argument only asks; the third points to memory for one `sigaction`, which is valid as zeroes
    // should the call fail.
    let action = unsafe {
        libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr());
        action.assume_init()
    };
    action.sa_sigaction != libc::SIG_DFL && action.sa_sigaction != libc::SIG_IGN
}

#[cfg(all(test, target_os = "linux", not(miri)))]
mod tests {
    use super::*;

    extern "C" fn nothing(_: i32) {}

    #[test]
    fn a_signal_that_a_thread_does_not_take_is_pending() {
        let signal = libc::SIGRTMIN() + 12;
        // SAFETY: the handler does nothing; no other test uses this signal.
        unsafe { libc::signal(signal, nothing as *const () as libc::sighandler_t) };
        let (is_seen, next) = std::thread::spawn(move || {
            let this = this_thread();
            block_others();
            assert!(!is_pending(this, signal) && send(this, signal));
            (is_pending(this, signal), is_pending(this, signal + 1))
        })
        .join()
        .expect("a thread");
        assert_eq!((is_seen, next), (true, false));
        assert!(!is_pending(0, signal), "no thread");
    }
}
