//! Signal masks of native threads.

/// Blocks every signal on the calling thread, so that the kernel delivers them where Python looks for them.
pub fn block_all() {
    // SAFETY: `sigfillset` initialises the set it is given; `pthread_sigmask` reads it and changes only the calling
    // thread's mask. Both pointers are valid for the calls, and a null third argument is allowed.
    unsafe {
        let mut set = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
        libc::sigfillset(set.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut());
    }
}
