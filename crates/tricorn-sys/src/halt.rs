//! Has another thread of this process stand still for a moment, so that its stack can be read (`doctor_deep`).
//!
//! ```text
//!   one that looks:   Asked ── tgkill ──▶ wait ────────▶ read ── Idle, wake ──▶
//!   one that computes:         handler: registers, Stands ── wait, 20 ms at most ── Idle or Left ──▶ goes on
//! ```
//!
//! The kernel tells registers only of threads that wait in it. The handler runs on the thread itself and gets them (`ucontext_t`). It
//! touches nothing but the words below and makes system calls that are safe in handlers: no lock, no memory, nothing of Python.
//!
//! Its signal may end a system call early (EINTR): it is sent to threads that compute only. One that enters a call just then has
//! SA_RESTART, which does not cover poll(2), nanosleep(2) and the like (signal(7)).
use super::signals::{self, ThreadId};
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// Where a thread that stands still was.
#[derive(Debug, Clone, Copy, Default)]
pub struct Registers {
    pub program: u64,
    pub stack: u64,
    pub frame: u64,
    /// On aarch64; elsewhere 0.
    pub link: u64,
}

/// The handler, for as long as this lives.
#[derive(Debug)]
pub struct Halter {
    /// Nothing else makes one.
    _private: (),
}

/// How long the handler stands, and how long it is waited for.
const LIMIT: Duration = Duration::from_millis(20);
/// Pieces in which that is waited, since a wake-up may be for nothing.
const PIECE: Duration = Duration::from_millis(2);

const IDLE: u32 = 0;
const ASKED: u32 = 1;
const STANDS: u32 = 2;
/// It was not let go in time, and went on.
const LEFT: u32 = 3;

static STATE: AtomicU32 = AtomicU32::new(IDLE);
static WANTED: AtomicI32 = AtomicI32::new(0);
/// Signals that were sent and have not arrived: a thread may block them.
static UNDERWAY: AtomicU32 = AtomicU32::new(0);
static PROGRAM: AtomicU64 = AtomicU64::new(0);
static STACK: AtomicU64 = AtomicU64::new(0);
static FRAME: AtomicU64 = AtomicU64::new(0);
static LINK: AtomicU64 = AtomicU64::new(0);

impl Halter {
    /// `None`: the application has a handler for the signal, or there are none here.
    pub fn install() -> Option<Halter> {
        let number = signals::halt_signal().filter(|_| SUPPORTED)?;
        let now = action_of(number)?;
        if now.sa_sigaction != libc::SIG_DFL && now.sa_sigaction != handler() {
            return None;
        }
        let mut ours = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: zeroes are a valid `sigaction`; the fields are set before it is given away, and the handler is one of three arguments
        // as SA_SIGINFO promises. It is safe in any thread at any moment: see there.
        let done = unsafe {
            let ours = ours.assume_init_mut();
            ours.sa_sigaction = handler();
            ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
            libc::sigfillset(&raw mut ours.sa_mask);
            libc::sigaction(number, ours, std::ptr::null_mut())
        };
        (done == 0).then_some(Halter { _private: () })
    }

    /// Reads while a thread stands still, some tens of microseconds. Whether it did until the end.
    pub fn halt(&self, thread: ThreadId, read: &mut dyn FnMut(Registers)) -> bool {
        let Some(number) = signals::halt_signal() else { return false };
        let is_ours = action_of(number).is_some_and(|action| action.sa_sigaction == handler());
        if !is_ours || UNDERWAY.load(Ordering::Acquire) != 0 {
            return false;
        }
        WANTED.store(thread, Ordering::Relaxed);
        STATE.store(ASKED, Ordering::Release);
        UNDERWAY.fetch_add(1, Ordering::AcqRel);
        if !signals::send(thread, number) {
            UNDERWAY.fetch_sub(1, Ordering::AcqRel);
            STATE.store(IDLE, Ordering::Release);
            return false;
        }
        wait_while(ASKED);
        if STATE.load(Ordering::Acquire) != STANDS {
            // It may come yet, and finds that it is not wanted any more.
            let _ = STATE.compare_exchange(ASKED, IDLE, Ordering::AcqRel, Ordering::Acquire);
            if STATE.load(Ordering::Acquire) != STANDS {
                STATE.store(IDLE, Ordering::Release);
                return false;
            }
        }
        let at = |word: &AtomicU64| word.load(Ordering::Relaxed);
        read(Registers { program: at(&PROGRAM), stack: at(&STACK), frame: at(&FRAME), link: at(&LINK) });
        let stood = STATE.compare_exchange(STANDS, IDLE, Ordering::AcqRel, Ordering::Acquire).is_ok();
        STATE.store(IDLE, Ordering::Release);
        wake();
        stood
    }
}

impl Drop for Halter {
    /// Gives the signal back, unless one of them is still on its way: by default it would end the process.
    fn drop(&mut self) {
        let Some(number) = signals::halt_signal() else { return };
        let is_ours = action_of(number).is_some_and(|action| action.sa_sigaction == handler());
        if is_ours && UNDERWAY.load(Ordering::Acquire) == 0 {
            let default = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
            // SAFETY: zeroes are SIG_DFL, no flags and no mask.
            unsafe { libc::sigaction(number, default.as_ptr(), std::ptr::null_mut()) };
        }
    }
}

fn action_of(number: i32) -> Option<libc::sigaction> {
    let mut action = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: a null second argument only asks; the third points to memory for one `sigaction`, and zeroes are one.
    unsafe { (libc::sigaction(number, std::ptr::null(), action.as_mut_ptr()) == 0).then(|| action.assume_init()) }
}

fn handler() -> libc::sighandler_t {
    stand as extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) as *const () as libc::sighandler_t
}

/// On the thread itself, anywhere in its code: words, and system calls that do not allocate. `errno` is as it was.
extern "C" fn stand(_: libc::c_int, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: `errno` of this thread; the address is valid for as long as the thread.
    let errno = unsafe { *errno_at() };
    if WANTED.load(Ordering::Acquire) == signals::this_thread() && STATE.load(Ordering::Acquire) == ASKED {
        let at = registers(context);
        PROGRAM.store(at.program, Ordering::Relaxed);
        STACK.store(at.stack, Ordering::Relaxed);
        FRAME.store(at.frame, Ordering::Relaxed);
        LINK.store(at.link, Ordering::Relaxed);
        if STATE.compare_exchange(ASKED, STANDS, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            wake();
            wait_while(STANDS);
            let _ = STATE.compare_exchange(STANDS, LEFT, Ordering::AcqRel, Ordering::Acquire);
        }
    }
    UNDERWAY.fetch_sub(1, Ordering::AcqRel);
    // SAFETY: as above.
    unsafe { *errno_at() = errno };
}

/// Until the state is another one, or the time is over.
fn wait_while(state: u32) {
    for _ in 0..LIMIT.as_millis() / PIECE.as_millis() {
        if STATE.load(Ordering::Acquire) != state {
            return;
        }
        let piece = libc::timespec { tv_sec: 0, tv_nsec: PIECE.as_nanos() as libc::c_long };
        futex(libc::FUTEX_WAIT, state, &raw const piece);
    }
}

fn wake() {
    futex(libc::FUTEX_WAKE, u32::MAX >> 1, std::ptr::null());
}

#[cfg(target_os = "linux")]
fn futex(operation: i32, value: u32, limit: *const libc::timespec) {
    let word = STATE.as_ptr();
    // SAFETY: the word is static; `limit` is null or lives until the call is over. It returns early for any reason.
    unsafe { libc::syscall(libc::SYS_futex, word, operation | libc::FUTEX_PRIVATE_FLAG, value, limit) };
}

#[cfg(target_os = "linux")]
fn errno_at() -> *mut libc::c_int {
    // SAFETY: it only tells where `errno` is.
    unsafe { libc::__errno_location() }
}

const SUPPORTED: bool = cfg!(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")));

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn registers(context: *mut libc::c_void) -> Registers {
    // SAFETY: the kernel gives a handler with SA_SIGINFO a `ucontext_t`, which lives as long as the handler runs.
    let saved = unsafe { &(*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
    let at = |register: i32| saved[register as usize] as u64;
    Registers { program: at(libc::REG_RIP), stack: at(libc::REG_RSP), frame: at(libc::REG_RBP), link: 0 }
}

#[cfg(all(target_os = "linux", target_arch = "aarch64"))]
fn registers(context: *mut libc::c_void) -> Registers {
    // SAFETY: the kernel gives a handler with SA_SIGINFO a `ucontext_t`, which lives as long as the handler runs.
    let saved = unsafe { &(*context.cast::<libc::ucontext_t>()).uc_mcontext };
    Registers { program: saved.pc, stack: saved.sp, frame: saved.regs[29], link: saved.regs[30] }
}

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
fn registers(_: *mut libc::c_void) -> Registers {
    Registers::default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    /// Computes until it is told to end; its number comes first.
    fn computing(ends: &Arc<AtomicBool>) -> (ThreadId, std::thread::JoinHandle<u64>) {
        let (ends, (tell, told)) = (ends.clone(), std::sync::mpsc::channel());
        let thread = std::thread::spawn(move || {
            tell.send(signals::this_thread()).expect("a receiver");
            let mut count = 0_u64;
            while !ends.load(Ordering::Relaxed) {
                count = std::hint::black_box(count.wrapping_add(1));
            }
            count
        });
        (told.recv().expect("a number"), thread)
    }

    /// A thread that was let go has left the handler.
    fn until_gone_on() {
        let deadline = std::time::Instant::now() + Duration::from_secs(60);
        while UNDERWAY.load(Ordering::Acquire) != 0 {
            assert!(std::time::Instant::now() < deadline, "it does not go on");
            std::thread::yield_now();
        }
    }

    /// One test: there is one signal, and one set of words.
    #[test]
    fn a_thread_that_computes_stands_still_and_goes_on() {
        let number = signals::halt_signal().expect("realtime signals");
        let ends = Arc::new(AtomicBool::new(false));
        let (thread, handle) = computing(&ends);
        let halter = Halter::install().expect("the signal is free");
        let mut stood = 0;
        let deadline = std::time::Instant::now() + Duration::from_secs(60);
        while stood < 25 {
            assert!(std::time::Instant::now() < deadline, "{stood} times: a busy machine may be late, and not always");
            until_gone_on();
            let mut at = Registers::default();
            stood += u32::from(halter.halt(thread, &mut |registers| at = registers));
            assert!(at.program == 0 || (at.stack != 0 && at.stack.is_multiple_of(8)), "{at:?}");
        }
        until_gone_on();
        let mut until_it_leaves = |_| {
            let deadline = std::time::Instant::now() + Duration::from_secs(60);
            while STATE.load(Ordering::Acquire) == STANDS && std::time::Instant::now() < deadline {
                std::thread::sleep(PIECE);
            }
        };
        assert!(!halter.halt(thread, &mut until_it_leaves), "it went on meanwhile");
        until_gone_on();
        assert!(!halter.halt(i32::MAX, &mut |_| {}), "there is no such thread");
        drop(halter);
        assert_eq!(action_of(number).map(|action| action.sa_sigaction), Some(libc::SIG_DFL), "it is given back");

        // SAFETY: a disposition of the test's own; nothing sends the signal.
        unsafe { libc::signal(number, libc::SIG_IGN) };
        assert!(Halter::install().is_none(), "the application has said what it does");
        // SAFETY: as above.
        unsafe { libc::signal(number, libc::SIG_DFL) };
        ends.store(true, Ordering::Relaxed);
        assert!(handle.join().expect("ends") > 0);
    }
}
