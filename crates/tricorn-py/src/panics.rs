//! Panics: defects of ours. One costs its request; it is told with its place in the source, and the thread goes on.
use std::cell::Cell;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

/// A panic that was caught: its message, and where it came from.
pub struct Panicked(pub String);

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
            LAST.set(Some(panic.to_string()));
            if HAS_GREENLETS.load(Ordering::Relaxed) {
                let _ = writeln!(std::io::stderr(), "tricorn {panic}");
            } else {
                before(panic);
            }
        }));
    });
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
    catch_unwind(AssertUnwindSafe(work)).map_err(|_| {
        let text = LAST.take().unwrap_or_else(|| "panicked".into());
        Panicked(format!("tricorn {text} (this is a defect of tricorn)"))
    })
}
