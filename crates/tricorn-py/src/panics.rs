//! Panics: defects of ours, but for one. A panic costs its request; it is told with its place in the source, and the thread goes
//! on.
//!
//! Where Python has no memory for an object that pyo3 makes without asking whether it could, pyo3 panics. That is no
//! defect: it is told as what it is.
use std::cell::Cell;
use std::io::Write;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

/// A panic that was caught: what the log is told of it.
pub struct Panicked(pub String);

/// What pyo3 says when Python returns no object.
pub const NO_OBJECT: &str = "PyObject pointer is null";

static INSTALLED: Once = Once::new();
static HAS_GREENLETS: AtomicBool = AtomicBool::new(false);

thread_local! {
    static LAST: Cell<Option<String>> = const { Cell::new(None) };
}

/// Notes the place of each panic from now on.
pub fn watch() {
    INSTALLED.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if let Some(text) = without_memory(panic) {
                LAST.set(Some(text));
                return;
            }
            LAST.set(Some(format!("tricorn {panic} (this is a defect of tricorn)")));
            if HAS_GREENLETS.load(Ordering::Relaxed) {
                let _ = writeln!(std::io::stderr(), "tricorn {panic}");
            } else {
                before(panic);
            }
        }));
    });
}

/// The exception itself is on stderr: pyo3 has written it there.
fn without_memory(panic: &PanicHookInfo<'_>) -> Option<String> {
    (panic.payload().downcast_ref() == Some(&NO_OBJECT)).then(|| {
        let place = panic.location().map(|place| format!(", at {place}")).unwrap_or_default();
        format!("Python could not allocate an object: the process or its container is out of memory{place}")
    })
}

/// No panic prints a backtrace from now on: greenlet copies the stack of one that waits away, and who walks the stack of
/// another beyond its first frame reads what is not there (RUST_BACKTRACE=1 ended in SIGSEGV).
pub fn watch_greenlets() {
    HAS_GREENLETS.store(true, Ordering::Relaxed);
}

/// Runs `work` as far as it comes.
///
/// What it owned is dropped; an exchange among that gives back what it had. What it worked on is whole: it is taken out while it
/// is worked on, or changed in single steps.
#[inline]
pub fn caught<T>(work: impl FnOnce() -> T) -> Result<T, Panicked> {
    catch_unwind(AssertUnwindSafe(work))
        .map_err(|_| Panicked(LAST.take().unwrap_or_else(|| "tricorn panicked (this is a defect of tricorn)".into())))
}
