//! Writing to a pipe whose reader is gone, on a thread that is not ours.
#[cfg(target_os = "linux")]
use std::mem::MaybeUninit;

/// Runs `work` with SIGPIPE held back on this thread, and forgets the one it may have caused: an application may have
/// taken back Python's decision to ignore that signal, and must not die of our log.
#[cfg(target_os = "linux")]
pub fn without_sigpipe<T>(work: impl FnOnce() -> T) -> T {
    // SAFETY: the sets are initialised by `sigemptyset` or by the system before they are read, and live on this stack;
    // only this thread's mask changes, and back. `sigtimedwait` allows a null second argument.
    unsafe {
        let mut pipe = MaybeUninit::<libc::sigset_t>::uninit();
        libc::sigemptyset(pipe.as_mut_ptr());
        libc::sigaddset(pipe.as_mut_ptr(), libc::SIGPIPE);
        let mut before = MaybeUninit::<libc::sigset_t>::uninit();
        if libc::pthread_sigmask(libc::SIG_BLOCK, pipe.as_ptr(), before.as_mut_ptr()) != 0 {
            return work();
        }
        let result = work();
        if libc::sigismember(before.as_ptr(), libc::SIGPIPE) == 0 {
            let now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
            libc::sigtimedwait(pipe.as_ptr(), std::ptr::null_mut(), &raw const now);
            libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), std::ptr::null_mut());
        }
        result
    }
}

/// There is no way to take a pending signal back.
#[cfg(not(target_os = "linux"))]
pub fn without_sigpipe<T>(work: impl FnOnce() -> T) -> T {
    work()
}
