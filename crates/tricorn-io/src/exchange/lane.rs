//! An exchange's way to its client: a connection, or one stream of a trunk.
//!
//! ```text
//!   send ──▶ output (`output.rs`): what the socket takes at once, and what waits
//! ```
//!
//! After a loss (`link.rs`) everything is dropped. Whatever needs a descriptor (a poller, a thread that waits, an application that takes
//! the connection) asks [`Lane::descriptor`].
use super::counted::Counted;
use super::descriptor::Descriptor;
use super::encoding;
use super::id::RequestId;
use super::link::{Link, Loss};
use super::lost::{Lease, Lost};
use super::outbox::{Outbox, SharedBytes};
use super::output::{Disks, FULL, Lent, Output, Piece, Progress, Watched, When};
use super::overflow::{Full, Held, Store};
use super::patience::Patience;
use super::turn::Asked;
use crate::clock;
use crate::disk::DiskFile;
use crate::stream::{Room, Stream};
use crate::sys::wake::Alarm;
use crate::tls::Facts;
use rustix::fd::OwnedFd;
use rustix::io;
use std::net::SocketAddr;
use std::sync::Arc;

/// What became of bytes given to an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// With the kernel, or queued below the mark: go on.
    Accepted,
    /// The client is too far behind: call [`Engine::make_room`](crate::Engine::make_room) before the next piece.
    OverMark,
    /// The client reads no more.
    Gone,
}

/// Pieces that come closer to one another than this (nanoseconds) are gathered.
const RAPID: u64 = 50_000;

/// The sending side of an exchange.
///
/// Its module sees the output, to take an exchange apart in place.
pub struct Lane {
    pub(super) output: Output,
    link: Link,
    /// Bytes that may wait before the application does.
    mark: usize,
    /// When the last piece came of which more were to come; 0: there was none.
    last_piece: u64,
    /// How the client takes what was put on disk.
    behind: Option<Patience>,
    wait: Wait,
    /// The monitor is to be told that bytes wait.
    is_news: bool,
    /// The monitor may answer, or could before the first byte.
    has_limit: bool,
    /// Which request it is. Dropped behind the output, so that the socket is closed when the reactor is told.
    lease: Lease,
}

/// What waits for the client, as far as this side knows: only this side adds to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wait {
    /// Nothing. `may_hold`: a whole answer may wait for others.
    Nothing { may_hold: bool },
    /// Something may.
    Something,
    /// A whole answer waits for others.
    Held,
}

impl Lane {
    /// `mark`: bytes that may wait before the application does.
    #[inline]
    pub fn new(id: RequestId, output: Output, mark: usize) -> Lane {
        Lane {
            output,
            link: Link::default(),
            mark,
            last_piece: 0,
            behind: None,
            wait: Wait::Nothing { may_hold: false },
            is_news: false,
            has_limit: false,
            lease: Lease::of(id),
        }
    }

    /// The request that is answered here.
    #[inline]
    pub fn id(&self) -> RequestId {
        self.lease.request()
    }

    /// The call in this slot begins: what it has of the reactor's goes back there, whatever becomes of the exchange.
    #[inline]
    pub fn begin_lease(&mut self, slot: usize, counted: &Counted, lost: Arc<Lost>) {
        self.lease.begin(slot, counted, lost);
    }

    /// The exchange is given back; with what [`Lane::begin_lease`] was given.
    #[inline]
    pub fn end_lease(&mut self) -> Option<Arc<Lost>> {
        self.lease.end()
    }

    #[inline]
    pub fn descriptor(&self) -> Descriptor<'_> {
        match self.stream().channel() {
            None if self.stream().borrowed().is_some() => Descriptor::Borrowed(self.output.socket()),
            None => Descriptor::Own(self.output.socket()),
            Some(_) => Descriptor::Shared,
        }
    }

    /// A descriptor that is readable while there are bytes of the client's, or its end.
    ///
    /// # Errors
    /// The system has none.
    pub fn readable(&self) -> io::Result<OwnedFd> {
        self.stream().readable()
    }

    /// What is to be waited for until more can be sent.
    ///
    /// # Errors
    /// The system has no descriptor.
    pub fn room(&self) -> io::Result<Room<'_>> {
        self.stream().room()
    }

    /// The connection, to be read from.
    #[inline]
    pub(crate) fn stream(&self) -> &Stream {
        self.output.stream()
    }

    /// For the monitor.
    pub(crate) fn watched(&self) -> Watched {
        self.output.watched(self.id().connection())
    }

    /// The client's session, if it speaks TLS with this server.
    pub fn facts(&self) -> Option<&Arc<Facts>> {
        self.stream().facts()
    }

    /// The address that the client has connected to.
    pub fn local_address(&self) -> Option<SocketAddr> {
        self.stream().local_address()
    }

    /// The path that the client has connected to, if it is that of a unix socket.
    pub fn local_path(&self) -> Option<Vec<u8>> {
        self.stream().local_path()
    }

    /// It speaks another protocol since the reply (101).
    #[inline]
    pub fn has_switched(&self) -> bool {
        self.link == Link::Switched
    }

    /// From now on it speaks another protocol.
    pub fn switch(&mut self) {
        self.link.switch();
    }

    /// The application has it for itself.
    pub fn is_taken(&self) -> bool {
        self.link.is_taken()
    }

    /// The application takes it. False: it has it already.
    pub fn take(&mut self) -> bool {
        self.link.take()
    }

    /// From now on this speaks to another stream. The output of before, and what its client has not taken; `None`: a part of that is a
    /// file's, and all stays as it is.
    #[cold]
    pub(crate) fn redirect(&mut self, other: Stream, spent: &mut Vec<SharedBytes>) -> Option<(Output, Outbox)> {
        if self.output.has_file() {
            return None;
        }
        let mut other = Output::new(other);
        other.follow(&self.output);
        let mut before = std::mem::replace(&mut self.output, other);
        let outbox = before.take_outbox(spent);
        self.wait = Wait::Nothing { may_hold: false };
        Some((before, outbox))
    }
}

/// Sending.
impl Lane {
    /// Sends `out`, `piece` and `after`, in one system call where possible. `out` is scratch: small pieces are copied to it.
    ///
    /// `keep` is called if the bytes of the piece must outlive this call; it gives an owner of the same bytes.
    #[inline]
    pub(crate) fn send(
        &mut self,
        out: &mut Vec<u8>,
        piece: &[u8],
        after: &[u8],
        keep: impl FnOnce() -> SharedBytes,
    ) -> Sent {
        if self.is_tunnel() {
            encoding::enclose(out, out.len() + piece.len() + after.len());
        }
        self.give(Piece::Bytes { head: out, body: piece, tail: after, keep }, When::Now)
    }

    /// Another protocol is spoken, on a stream of HTTP/2: its bytes are content.
    #[inline]
    fn is_tunnel(&self) -> bool {
        self.has_switched() && self.stream().channel().is_some()
    }

    /// Sends a piece of which more are to come. One that comes right after another is gathered with it.
    #[inline]
    pub(crate) fn send_piece(
        &mut self,
        out: &mut Vec<u8>,
        piece: &[u8],
        after: &[u8],
        keep: impl FnOnce() -> SharedBytes,
    ) -> Sent {
        let last = std::mem::replace(&mut self.last_piece, clock::now());
        let gather = last > 0 && self.last_piece - last < RAPID && piece.len() < FULL;
        let when = When::Streaming { gather, mark: self.mark };
        self.give(Piece::Bytes { head: out, body: piece, tail: after, keep }, when)
    }

    /// Sends the last piece. A whole answer may wait for others.
    #[inline]
    pub(crate) fn send_last(
        &mut self,
        out: &mut Vec<u8>,
        piece: &[u8],
        after: &[u8],
        keep: impl FnOnce() -> SharedBytes,
    ) -> Sent {
        let may_hold = self.wait == Wait::Nothing { may_hold: true };
        let when = if may_hold { When::Together } else { When::Now };
        self.give(Piece::Bytes { head: out, body: piece, tail: after, keep }, when)
    }

    /// Queues bytes of a file (from an offset, so many) between others, which are sent as far as they come before it. The file is sent by
    /// jobs: when the exchange is given back, or after [`Lane::leave_rest`], or while it waits for its client.
    pub(crate) fn send_file(&mut self, out: &[u8], file: (Arc<DiskFile>, u64, u64), after: &[u8]) -> Sent {
        self.give::<fn() -> SharedBytes>(Piece::File { head: out, file, tail: after }, When::Now)
    }

    /// Leaves what waits to the monitor, and the application goes on.
    pub(crate) fn leave_rest(&mut self) {
        self.is_news |= self.output.leave();
    }

    #[inline]
    fn give<K: FnOnce() -> SharedBytes>(&mut self, piece: Piece<'_, K>, when: When) -> Sent {
        if self.link.is_lost() {
            return Sent::Gone;
        }
        let progress = self.output.send(piece, when);
        self.note(progress)
    }

    #[inline]
    pub(super) fn note(&mut self, progress: Progress) -> Sent {
        self.wait = match progress {
            Progress::Sent => Wait::Nothing { may_hold: false },
            Progress::Held => Wait::Held,
            Progress::Left { .. } | Progress::Waits { .. } => Wait::Something,
            Progress::Gone => return self.lose(Loss::Gone),
        };
        match progress {
            Progress::Waits { bytes } if bytes > self.mark => Sent::OverMark,
            Progress::Left { is_news } => {
                self.is_news |= is_news;
                Sent::Accepted
            }
            _ => Sent::Accepted,
        }
    }

    /// Sends what fits, and nothing if something waits already: for interim responses that may be left out.
    pub(crate) fn send_optional(&mut self, bytes: &[u8]) {
        self.output.send_optional(bytes);
    }

    /// Leaves bytes to be sent with the next ones, or by [`Lane::flush`].
    pub(crate) fn queue(&mut self, bytes: &[u8]) {
        if self.is_tunnel() {
            let mut mark = Vec::new();
            encoding::enclose(&mut mark, bytes.len());
            self.output.queue(&mark);
        }
        self.output.queue(bytes);
        self.wait = Wait::Something;
    }

    /// Sends what waits, as far as the socket takes it.
    pub(crate) fn flush(&mut self) -> Sent {
        let progress = self.output.flush();
        self.note(progress)
    }

    /// The same for a producer that waits until no more than `level` bytes are left: whether it may go on, and the bytes sent so far
    /// that had to wait.
    pub(super) fn flush_to(&mut self, level: usize) -> (Sent, u64) {
        let (progress, sent) = self.output.flush_to(level);
        match (self.note(progress), progress) {
            (Sent::Gone, _) => (Sent::Gone, sent),
            (_, Progress::Waits { .. }) => (Sent::OverMark, sent),
            _ => (Sent::Accepted, sent),
        }
    }

    /// Whether the monitor is to be told that bytes wait, once.
    #[inline]
    pub(crate) fn take_news(&mut self) -> bool {
        std::mem::take(&mut self.is_news)
    }

    /// When the last piece came of which more were to come.
    #[inline]
    pub(crate) fn last_piece(&self) -> u64 {
        self.last_piece
    }
}

/// The end of a reply, and of the connection.
impl Lane {
    /// A whole answer may be held back, and sent with others (`Reactor::send_held`).
    #[inline]
    pub(crate) fn may_hold(&mut self, may_hold: bool) {
        if let Wait::Nothing { .. } = self.wait {
            self.wait = Wait::Nothing { may_hold };
        }
    }

    /// The reply has its end. `reuse`: the next one may follow.
    #[inline]
    pub(crate) fn set_reuse(&mut self, reuse: bool) {
        self.link.set_reuse(reuse);
    }

    /// The connection ends with what was given so far.
    pub(crate) fn set_last(&mut self) {
        self.link.set_reuse(false);
    }

    #[inline]
    pub(crate) fn link(&self) -> Link {
        self.link
    }

    /// Ends our side of the connection with the next bytes: see [`Stream::hold_until_end`].
    pub(super) fn hold_until_end(&self) {
        self.stream().hold_until_end();
    }

    /// Ends our side, if the client has taken all.
    pub(super) fn end_sending(&mut self) {
        if !self.is_behind() {
            let _ = self.stream().end_sending();
        }
    }

    /// What is written from now on is dropped, as is what waits.
    #[cold]
    pub(crate) fn lose(&mut self, why: Loss) -> Sent {
        self.link.lose(why);
        self.output.clear();
        self.wait = Wait::Nothing { may_hold: false };
        Sent::Gone
    }

    /// Owners of bytes that are sent or on disk. To be dropped by a thread that holds the GIL.
    pub(crate) fn take_spent(&mut self) -> Vec<SharedBytes> {
        self.output.take_spent()
    }
}

/// The monitor's answer to a request that is too late.
impl Lane {
    /// From now on the monitor may answer, as long as nothing was sent.
    pub(crate) fn expect(&mut self, asked: Asked) {
        self.has_limit = true;
        self.output.expect(asked);
    }

    /// The request has a time limit.
    #[inline]
    pub(super) fn has_limit(&self) -> bool {
        self.has_limit
    }

    /// Only the exchange answers from now on, though it has not begun.
    pub(crate) fn begin(&mut self) {
        self.output.begin();
    }

    /// Ends the monitor's right to answer. Whether it has answered in the application's place.
    #[inline]
    pub(crate) fn resolve(&mut self) -> bool {
        if std::mem::take(&mut self.has_limit) && !self.output.begin() {
            self.lose(Loss::AnsweredFor);
        }
        self.link.loss() == Some(Loss::AnsweredFor)
    }
}

/// What the client has not taken.
impl Lane {
    /// The application goes on when no more bytes than this are left.
    #[inline]
    pub(super) fn low(&self) -> usize {
        self.mark / 4
    }

    /// Whether the client has not taken all that was written.
    #[inline]
    pub(crate) fn is_behind(&self) -> bool {
        !matches!(self.wait, Wait::Nothing { .. }) && !self.output.is_clear()
    }

    /// The same of a complete reply that was not held back.
    #[inline]
    pub(crate) fn has_rest(&self) -> bool {
        self.wait == Wait::Something && !self.output.is_clear()
    }

    /// Bytes that wait in memory.
    #[inline]
    pub(crate) fn in_memory(&self) -> usize {
        self.output.in_memory()
    }

    /// Bytes sent that had to wait.
    pub(crate) fn queued_sent(&self) -> u64 {
        self.output.queued_sent()
    }

    /// All bytes sent.
    pub(crate) fn sent(&self) -> u64 {
        self.output.sent()
    }

    /// Counts what waits in memory, from now on, for all responses.
    pub(crate) fn share(&mut self, held: &Arc<Held>) {
        self.output.share(held);
    }

    /// The client is over the mark. One that has taken too little since its file was begun has not won time by each piece
    /// that was put there.
    pub(crate) fn patience_since_file(&mut self) -> Option<Patience> {
        self.behind.take().filter(|_| self.output.is_on_disk())
    }

    /// Has what waits in memory put on disk, its first bytes excepted. Whether there is anything to be put there.
    pub(crate) fn store(&mut self, disks: &Arc<Disks>, held: &Held, store: &Store) -> Result<bool, Full> {
        self.output.store(disks, held, store, self.mark / 4)
    }

    /// Whether that has failed, which is told once.
    pub(crate) fn take_store_failure(&mut self) -> bool {
        self.output.take_store_failure()
    }

    /// Some of what waits was put on disk, or is on its way there.
    pub(crate) fn is_on_disk(&self) -> bool {
        self.output.is_on_disk()
    }

    /// Has what waits in a file sent, if that is next.
    pub(crate) fn lend(&mut self, disks: &Arc<Disks>) -> Lent {
        let token = self.id().connection();
        self.output.lend(disks, token)
    }

    /// Readable once the job is back that is at what is sent next. `None`: there is none.
    pub(crate) fn await_job(&mut self) -> Option<Arc<Alarm>> {
        self.output.await_job()
    }

    /// The application goes on, since what was too much is on disk.
    pub(crate) fn resume(&mut self, patience: Patience) {
        self.behind = Some(patience);
        self.leave_rest();
    }
}

#[cfg(test)]
mod tests {
    use super::super::output::LateAnswer;
    use super::super::responder::late_page;
    use super::*;
    use rustix::fd::AsRawFd;
    use std::io::Read;
    use std::os::unix::net::UnixStream;
    use tricorn_proto::message::{Method, Version};

    fn pair() -> (Lane, UnixStream) {
        let (ours, theirs) = UnixStream::pair().expect("sockets");
        ours.set_nonblocking(true).expect("socket");
        (Lane::new(RequestId::new(7, 3), Output::new(Stream::new(ours.into())), usize::MAX), theirs)
    }

    fn none() -> SharedBytes {
        Box::new(Vec::new())
    }

    #[test]
    fn a_lane_of_its_own_connection_has_its_socket_until_the_end() {
        let (mut lane, _theirs) = pair();
        assert_eq!(lane.id(), RequestId::new(7, 3));
        assert!(lane.take() && !lane.take() && lane.is_taken());
        lane.switch();
        assert!(!lane.has_switched(), "it is the application's");
        let Descriptor::Own(socket) = lane.descriptor() else { panic!("it is a socket") };
        let number = socket.as_raw_fd();
        assert_ne!(lane.descriptor().duplicate().expect("a descriptor").as_raw_fd(), number);
        assert_eq!((lane.local_address(), lane.local_path()), (None, None), "a pair has no names");
    }

    #[test]
    fn what_does_not_fit_follows_in_order_however_it_was_given() {
        let (mut lane, mut peer) = pair();
        let piece: Vec<u8> = (0..2_000_000u32).map(|nr| (nr % 251) as u8).collect();
        let kept = piece.clone();
        let reader = std::thread::spawn(move || {
            let mut got = Vec::new();
            peer.read_to_end(&mut got).expect("socket");
            got
        });
        lane.queue(b"held ");
        assert_eq!(lane.send(&mut b"head ".to_vec(), &piece, b" after", || Box::new(kept)), Sent::Accepted);
        lane.send(&mut b"small".to_vec(), b" piece", b"", none);
        while lane.is_behind() {
            assert_ne!(lane.flush(), Sent::Gone);
        }
        let total = lane.sent();
        drop(lane);
        let got = reader.join().expect("reader");
        assert_eq!(got.len() as u64, total);
        assert_eq!(got, [b"held head ".as_slice(), &piece, b" aftersmall piece"].concat());
    }

    #[test]
    fn a_client_that_is_behind_is_over_the_mark_and_near_again_at_a_quarter() {
        let (lane, _peer) = pair();
        let mut lane = Lane { mark: 1000, ..lane };
        assert_eq!(lane.low(), 250);
        let sent = lane.send(&mut Vec::new(), &vec![0; 4 << 20], b"", || Box::new(vec![0; 4 << 20]));
        assert_eq!(sent, Sent::OverMark);
        assert!(lane.is_behind() && lane.has_rest());
    }

    #[test]
    fn after_a_loss_nothing_is_sent_nor_kept() {
        let (mut lane, peer) = pair();
        drop(peer);
        assert_eq!(lane.send(&mut b"anybody there?".to_vec(), b"", b"", none), Sent::Gone);
        lane.set_last();
        assert_eq!((lane.link(), lane.is_behind()), (Link::Lost(Loss::Gone), false));
        assert_eq!(lane.send(&mut b"and".to_vec(), &[b'?'; 2 * FULL], b"", none), Sent::Gone);
    }

    #[test]
    fn a_request_that_the_monitor_has_answered_gets_no_second_answer() {
        for bytes in [b"".as_slice(), &[b'x'; 2 * FULL]] {
            let (mut lane, mut peer) = pair();
            lane.expect(Asked { method: Method::Get, version: Version::Http11, request_id: Box::default() });
            lane.may_hold(true);
            assert_eq!(lane.watched().answer_late(b"late"), LateAnswer::Sent);
            assert_eq!(
                lane.send_last(&mut b"whole".to_vec(), b"", b"", none),
                Sent::Gone,
                "to be sent later is no better"
            );
            assert_eq!(lane.send(&mut b"application".to_vec(), bytes, b"", none), Sent::Gone);
            assert!(lane.resolve() && lane.resolve());
            let page = late_page(b"late", Method::Get, Version::Http11, b"");
            assert_eq!(lane.sent(), page.len() as u64);
            drop(lane);
            let mut got = Vec::new();
            peer.read_to_end(&mut got).expect("socket");
            assert_eq!(got, page);
        }
    }

    #[test]
    fn only_a_small_answer_that_is_whole_is_held_back() {
        let (mut lane, _peer) = pair();
        let send = |lane: &mut Lane, body: &[u8]| {
            lane.send_last(&mut b"head".to_vec(), body, b"", || Box::new(body.to_vec()));
            lane.is_behind()
        };
        assert!(!send(&mut lane, b"body"), "not allowed");
        lane.may_hold(true);
        assert!(!send(&mut lane, &[0; FULL + 1]));
        lane.may_hold(true);
        assert!(send(&mut lane, b"body"));
        lane.set_reuse(true);
        assert!(lane.is_behind() && !lane.has_rest() && lane.link().may_reuse());
        let concluded = lane.output.conclude(&mut Vec::new());
        assert!(concluded.waits && concluded.is_held);
    }

    #[test]
    fn an_answer_that_is_held_back_goes_out_when_it_is_flushed() {
        let (mut lane, mut peer) = pair();
        lane.may_hold(true);
        lane.send_last(&mut b"answer".to_vec(), b"", b"", none);
        assert_eq!((lane.is_behind(), lane.flush(), lane.is_behind()), (true, Sent::Accepted, false));
        let concluded = lane.output.conclude(&mut Vec::new());
        assert!(!concluded.waits && concluded.sent == 6);
        let mut got = [0; 9];
        assert_eq!(peer.read(&mut got).expect("socket"), 6);
    }

    #[test]
    fn pieces_in_a_row_travel_together_and_the_first_at_once() {
        let (mut lane, mut peer) = pair();
        let mut got = [0; 64];
        lane.send_piece(&mut b"one ".to_vec(), b"", b"", none);
        assert_eq!(peer.read(&mut got).expect("socket"), 4);
        assert!(!lane.take_news());
        lane.last_piece = clock::now(); // this thread may not have run in between
        lane.send_piece(&mut b"two ".to_vec(), b"", b"", none);
        assert!(lane.take_news() && !lane.take_news());
        lane.last_piece = clock::now();
        lane.send_piece(&mut b"three".to_vec(), b"", b"", none);
        assert!(lane.is_behind() && !lane.take_news(), "the monitor knows");
        lane.last_piece = 1;
        lane.send_piece(&mut b" four".to_vec(), b"", b"", none);
        assert!(!lane.is_behind());
        let count = peer.read(&mut got).expect("socket");
        assert_eq!(&got[..count], b"two three four");
    }
}
