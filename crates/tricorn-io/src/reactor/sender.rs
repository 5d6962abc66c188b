//! The sender: a native thread that sends what responses have in files.
//!
//! sendfile(2) waits for the disk where the file is not in the page cache, and no flag keeps it from that. So no thread that
//! holds the baton sends from a file: it lends the rest of the reply to a thread of its own
//! (`disk_thread.rs`). What the socket did not take comes back.
use super::disk_thread::{DiskThread, stall};
use super::tokens::SPOOLED;
use crate::config::{self, Config, Failpoint};
use crate::exchange::outbox::SharedBytes;
use crate::exchange::output::Loan;
use crate::sys::poll::{Poller, Token};
use rustix::fd::RawFd;
use std::path::PathBuf;
use std::sync::Arc;

/// The rest of a reply, lent to the thread.
pub(super) struct Errand {
    pub token: Token,
    pub loan: Loan,
}

/// What the reactor holds of the thread.
pub struct Sender {
    poller: Arc<Poller>,
    /// For tests: the directory whose disk may hang.
    stalls: Option<PathBuf>,
    thread: Option<DiskThread<Errand, Errand>>,
    /// Descriptors of connections that the thread has.
    lent: Vec<RawFd>,
}

impl Sender {
    pub fn new(config: &Config, poller: Arc<Poller>) -> Sender {
        Sender::on(poller, config.upload_dir.clone().filter(|_| config.fault == Some(Failpoint::StallDisk)))
    }

    fn on(poller: Arc<Poller>, stalls: Option<PathBuf>) -> Sender {
        Sender { poller, stalls, thread: None, lent: Vec::new() }
    }

    /// Gives the thread the rest of a reply. Without a thread it comes back at once.
    pub(super) fn lend(&mut self, token: Token, loan: Loan) -> Result<(), Loan> {
        let thread = match &self.thread {
            Some(thread) => thread,
            None => match start(&self.poller, self.stalls.clone()) {
                Ok(thread) => self.thread.insert(thread),
                Err(_) => return Err(loan),
            },
        };
        let number = loan.descriptor();
        thread.order(Errand { token, loan }).map_err(|returned| returned.loan)?;
        self.lent.push(number);
        Ok(())
    }

    /// The next that comes back.
    pub(super) fn take(&mut self) -> Option<Errand> {
        let errand = self.thread.as_ref()?.take()?;
        let number = errand.loan.descriptor();
        self.lent.retain(|lent| *lent != number);
        Some(errand)
    }

    /// The descriptors that the thread has.
    pub fn descriptors(&self) -> impl Iterator<Item = RawFd> {
        self.lent.iter().copied()
    }

    /// The thread, to be ended without the baton.
    pub fn part(&mut self) -> Option<Ending> {
        self.thread.take().map(Ending)
    }
}

/// A thread that is to end.
pub struct Ending(DiskThread<Errand, Errand>);

impl Ending {
    /// Ends the thread. Owners of bytes that were not sent are for a thread that holds the GIL.
    pub fn end(self) -> Vec<SharedBytes> {
        let mut spent = Vec::new();
        self.0.end(|Errand { mut loan, .. }| {
            spent.append(&mut loan.take_spent());
            loan.into_outbox().clear(&mut spent);
        });
        spent
    }
}

fn start(poller: &Poller, stalls: Option<PathBuf>) -> std::io::Result<DiskThread<Errand, Errand>> {
    DiskThread::start("tricorn-sender", poller, SPOOLED, move |mut errand: Errand, is_closed| {
        if !is_closed {
            stalls.iter().for_each(|directory| stall(directory));
            errand.loan.send(config::TURN_BYTES);
        }
        Some(errand)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::outbox::{Flush, Outbox};
    use crate::exchange::output::Output;
    use crate::stream::Stream;
    use crate::sys::poll::{Events, ready};
    use rustix::event::PollFlags;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_file_is_sent_by_the_thread_and_what_the_client_does_not_take_comes_back() {
        let poller = Arc::new(Poller::new().expect("a poller"));
        let mut sender = Sender::on(poller.clone(), None);
        let (ours, mut theirs) = UnixStream::pair().expect("sockets");
        ours.set_nonblocking(true).expect("a socket");
        let mut ours = Output::new(Stream::new(ours.into()));
        let mut file = crate::exchange::body::new_file(None).expect("disk");
        let bytes: Vec<u8> = (0..3_000_000u32).map(|nr| (nr % 251) as u8).collect();
        file.write_all(&bytes).expect("disk");
        let mut outbox = Outbox::default();
        outbox.push_file(file.into(), 0, bytes.len() as u64);
        ours.put_outbox(outbox);
        let (mut got, mut piece) = (Vec::new(), vec![0; 1 << 20]);
        loop {
            assert!(sender.lend(7, ours.lend()).is_ok() && ours.is_lent());
            assert_eq!(sender.descriptors().count(), 1);
            assert!(!ready(poller.as_fd(), PollFlags::IN, 20_000_000_000).is_empty(), "the wake-up comes");
            poller.wait(&mut Events::default(), Some(0)).expect("events");
            let Errand { token, loan } = sender.take().expect("it comes back");
            assert_eq!((token, sender.descriptors().count()), (7, 0));
            let flush = loan.flush;
            assert!(!ours.give_back(loan) && !ours.is_lent());
            if flush == Some(Flush::Empty) {
                break;
            }
            let count = theirs.read(&mut piece).expect("a socket");
            got.extend_from_slice(&piece[..count]);
        }
        drop(ours);
        theirs.read_to_end(&mut got).expect("a socket");
        assert!(got == bytes, "{} bytes", got.len());
        assert!(sender.part().expect("it runs").end().is_empty());
    }
}
