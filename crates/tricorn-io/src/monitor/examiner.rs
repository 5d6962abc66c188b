//! The thread that looks at what holds up an event loop: where its thread is in Python and in C.
//!
//! A look takes tens of milliseconds, and the first one reads symbols from disk: the monitor has deadlines to keep. The thread is made
//! for the first look. What it reads it asks the kernel for (`tricorn-doctor`), so that it waits neither for the GIL nor for the
//! thread that it looks at.
use crate::clock::{self, MILLI};
use crate::sys::signals::{self, ThreadId};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;
use tricorn_doctor::{Doctor, Thread};

/// How long a look takes at least: the shares of processor time are of so long.
const WINDOW: Duration = Duration::from_nanos(20 * MILLI);
/// How far a source file is read.
const SOURCE: u64 = 4 << 20;
/// Most characters of a line of source.
const LINE: usize = 120;

/// What one look has found.
#[derive(Debug)]
pub(super) struct Finding {
    /// Of the episode that it was asked for.
    pub number: u64,
    pub thread: Thread,
    /// The line of the application, where it can be read.
    pub source: String,
    /// When the look was over.
    pub at: u64,
}

#[derive(Debug, Clone, Copy)]
struct Order {
    number: u64,
    thread: ThreadId,
}

#[derive(Debug, Default)]
pub(super) struct Examiner {
    link: Option<(Sender<Order>, Receiver<Finding>)>,
}

impl Examiner {
    /// Has this thread looked at. Nothing comes of it where that is not possible.
    pub fn ask(&mut self, number: u64, thread: ThreadId) {
        if self.link.is_none() {
            self.link = start();
        }
        if let Some((orders, _)) = &self.link {
            let _ = orders.send(Order { number, thread });
        }
    }

    /// One that looks at nothing.
    #[cfg(test)]
    pub fn idle() -> Examiner {
        Examiner { link: Some((channel().0, channel().1)) }
    }

    /// What the next look has found, if one has ended.
    pub fn take(&self) -> Option<Finding> {
        self.link.as_ref().and_then(|(_, found)| found.try_recv().ok())
    }
}

fn start() -> Option<(Sender<Order>, Receiver<Finding>)> {
    let (orders, inbox) = channel::<Order>();
    let (outbox, found) = channel();
    let run = move || {
        signals::block_others();
        let mut doctor = None;
        for order in &inbox {
            if doctor.is_none() {
                doctor = Doctor::open(std::process::id()).ok();
            }
            let Some(finding) = doctor.as_mut().and_then(|doctor| examine(doctor, order)) else { continue };
            if outbox.send(finding).is_err() {
                return;
            }
        }
    };
    std::thread::Builder::new().name("tricorn-doctor".into()).spawn(run).ok()?;
    Some((orders, found))
}

fn examine(doctor: &mut Doctor, Order { number, thread }: Order) -> Option<Finding> {
    let look = doctor.look(WINDOW).ok()?;
    let at = clock::now();
    let thread = look.threads.into_iter().find(|each| each.tid == thread as u32)?;
    let source = thread.application.as_ref().map(|frame| line_of(&frame.file, frame.line as usize));
    Some(Finding { number, source: source.unwrap_or_default(), thread, at })
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

    #[test]
    fn a_line_of_source_is_read_where_it_is() {
        let here = format!("{}/src/monitor/examiner.rs", env!("CARGO_MANIFEST_DIR"));
        assert!(line_of(&here, 1).starts_with("//! The thread that looks"));
        assert_eq!(line_of(&here, 1_000_000), "");
        assert_eq!(line_of("/nowhere", 1), "");
    }
}
