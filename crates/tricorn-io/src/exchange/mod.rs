//! One request on its way through the application. Its lane has the connection's output (`output.rs`).

pub mod body;
mod body_reader;
pub mod buffers;
mod cached;
mod client;
pub mod closing;
pub mod coder;
mod compressed;
pub mod counted;
pub mod descriptor;
pub mod encoding;
pub mod id;
pub mod incoming;
pub mod lane;
pub mod link;
pub mod lost;
mod named;
pub mod opening;
pub mod outbox;
pub mod output;
pub mod overflow;
mod pace;
mod parts;
pub mod patience;
pub mod representation;
pub mod responder;
pub mod responses;
pub mod room;
mod segments;
mod streaming;
pub mod timers;
pub mod times;
pub mod turn;

use crate::clock::{self, WallText};
use crate::compress::Compressors;
use crate::one_queue::affinity::Learner;
use crate::sys::wake::Alarm;
use crate::tls::Facts;
use body::Body;
use body_reader::BodyReader;
use buffers::Request;
use coder::Coder;
use id::RequestId;
use lane::Lane;
use link::Loss;
use outbox::SharedBytes;
use output::Output;
use parts::Parts;
use responder::Responder;
use std::sync::Arc;
use timers::Timers;
use tricorn_proto::access_log::{CallTime, Outcome};
use tricorn_proto::http1::Receiver;
use tricorn_proto::message::{RefusalKind, status};
use tricorn_proto::response::{End, Fault, HeadInputs};
use turn::Asked;

pub use client::{Attachment, Client};
pub use lane::Sent;

/// When things happened (monotonic nanoseconds).
#[derive(Debug, Clone, Copy, Default)]
pub struct Timing {
    /// The application was called.
    pub started: u64,
    /// It was done, but for the last write.
    pub answered: u64,
    /// How long the request waited before it was called.
    pub queue: u64,
    /// How long the thread that took it waited for the GIL, in microseconds, and one; 0: that was not measured.
    gil: u32,
    /// The place of its route (`scoreboard/routes.rs`); 0: it has none of its own.
    pub route: u16,
    /// The rule that its body broke.
    pub refused: Option<RefusalKind>,
    pub end: AppEnd,
}

/// How the application's part of a request ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AppEnd {
    #[default]
    Well,
    /// It let an exception out.
    Failed,
    /// It was ended since it was over `request_timeout`.
    Late,
    /// It was ended since the worker leaves (`streaming.rs`).
    Leaving,
    /// It had none: the server has answered with a file of its own.
    Uncalled,
}

impl Timing {
    /// The thread that took the request waited so many nanoseconds for the GIL.
    #[inline]
    pub fn waited_for_gil(&mut self, nanos: u64) {
        self.gil = u32::try_from(nanos / 1000).map_or(u32::MAX, |micros| micros.saturating_add(1));
    }

    /// For how many nanoseconds, if a thread did that may have to.
    #[inline]
    pub fn gil(&self) -> Option<u64> {
        self.gil.checked_sub(1).map(|micros| u64::from(micros) * 1000)
    }
}

pub struct Exchange {
    pub request: Box<Request>,
    pub client: Client,
    /// Of a body that is still to come.
    body: BodyReader,
    /// On an event loop: until when it waits for what.
    pub(crate) timers: Timers,
    pub timing: Timing,
    /// The clock's texts at the time the request was taken.
    pub wall: WallText,
    /// With sessions that stay with their workers.
    pub(crate) learner: Option<Learner>,
    coder: Coder,
    /// The app thread this exchange is with.
    pub(crate) slot: usize,
    /// Dropped last: then the reactor is told.
    pub lane: Lane,
}

/// The parts of an exchange that the reactor takes back.
pub(crate) struct Returned {
    pub id: RequestId,
    pub output: Output,
    pub request: Box<Request>,
    pub attachment: Option<Attachment>,
    pub receiver: Receiver,
    pub timing: Timing,
}

impl Exchange {
    pub(crate) fn new(
        lane: Lane,
        mut request: Box<Request>,
        receiver: Receiver,
        client: Client,
        wall: WallText,
    ) -> Box<Exchange> {
        let head = &request.head;
        let (kind, version, keep_alive) = (head.kind, head.version, head.keep_alive);
        request.reply.begin(kind, version, keep_alive);
        let timing = Timing { started: request.times.complete, ..Timing::default() };
        let body = match lane.stream().channel() {
            None => BodyReader::new(receiver),
            Some(_) => BodyReader::of_stream(request.body.len()),
        };
        Box::new(Exchange {
            lane,
            request,
            client,
            body,
            timers: Timers::default(),
            timing,
            wall,
            learner: None,
            coder: Coder::Off,
            slot: 0,
        })
    }

    #[inline]
    pub(crate) fn into_returned(self: Box<Exchange>) -> Returned {
        let id = self.lane.id();
        let Exchange { lane: Lane { output, .. }, request, client: Client { attachment, .. }, body, timing, .. } =
            *self;
        let receiver = body.into_receiver();
        Returned { id, output, request, attachment, receiver, timing }
    }

    /// What is known of the client's session, if it speaks TLS with this server.
    pub fn facts(&self) -> Option<&Arc<Facts>> {
        self.lane.facts()
    }

    pub fn slot(&self) -> usize {
        self.slot
    }

    /// All of the body, or what came of it with the head.
    pub fn take_body(&mut self) -> Body {
        let body = std::mem::take(&mut self.request.body);
        if self.request.partial {
            self.body.began_with(body.len());
        }
        body
    }

    /// The client is known to be gone; what is written from now on is dropped.
    pub fn is_gone(&self) -> bool {
        self.lane.link().is_lost()
    }

    /// The application is done; what remains is the last write.
    pub fn answered(&mut self) {
        self.timing.answered = clock::now();
    }

    /// The application is done with the exchange, however that came.
    #[inline]
    pub fn conclude(&mut self) {
        if self.timing.answered == 0 {
            self.answered();
        }
        if let Coder::Stream(_) = self.coder {
            self.coder = Coder::Off; // its compressor goes back here, and not under the baton
        }
        self.resolve();
    }

    /// From now on the monitor may answer, as long as nothing was sent.
    pub(crate) fn expect_late_answer(&mut self) {
        let Request { head, reply, .. } = &*self.request;
        self.lane.expect(Asked { method: head.kind, version: head.version, request_id: reply.request_id().into() });
    }

    /// Ends the monitor's right to answer, when the application is done. Whether it has answered, with 504.
    pub fn resolve(&mut self) -> bool {
        let is_new = self.lane.has_limit();
        let is_answered_for = self.lane.resolve();
        if is_new && is_answered_for {
            let Request { head, reply, .. } = &mut *self.request;
            // Whatever the application said since, this is what the client got.
            reply.begin(head.kind, head.version, false);
            let _ = reply.status(b"504 Gateway Timeout");
        }
        is_answered_for
    }

    /// Microseconds since the request's first byte, for the access log.
    pub fn micros(&self, now: u64) -> u64 {
        now.saturating_sub(self.request.times.first_byte) / 1000
    }

    /// What the call's time was used for, as far as that of a thread is known.
    pub fn call_time(&self) -> Option<CallTime> {
        self.request.times.call
    }

    /// Its reply may be compressed.
    #[inline]
    pub(crate) fn may_compress(&mut self, compressors: Option<&Arc<Compressors>>) {
        self.coder = Coder::of(compressors);
    }

    /// Sends a piece of the body as it is, and the head before the first one.
    #[inline]
    fn write_plain(&mut self, inputs: &HeadInputs<'_>, piece: &[u8], keep: impl FnOnce() -> SharedBytes) -> Sent {
        if piece.len() > encoding::most_of_piece(&self.request.reply) {
            return self.write_in_parts(inputs, piece, keep);
        }
        self.write_part(inputs, piece, keep)
    }

    #[inline]
    fn write_part(&mut self, inputs: &HeadInputs<'_>, piece: &[u8], keep: impl FnOnce() -> SharedBytes) -> Sent {
        let request = &mut *self.request;
        request.out.clear();
        if !request.reply.head_sent() {
            encoding::head(&mut request.reply, &mut request.out, inputs);
        }
        let (count, after) = encoding::piece(&mut request.reply, &mut request.out, piece.len() as u64);
        let piece = &piece[..(count as usize).min(piece.len())];
        request.reply.sends(piece);
        self.lane.send_piece(&mut request.out, piece, after, keep)
    }

    /// The same of a piece that is too long for one.
    #[cold]
    fn write_in_parts(&mut self, inputs: &HeadInputs<'_>, piece: &[u8], keep: impl FnOnce() -> SharedBytes) -> Sent {
        let (mut parts, mut sent) = (Parts::new(keep), Sent::Accepted);
        let most = encoding::most_of_piece(&self.request.reply);
        for at in (0..piece.len()).step_by(most) {
            let end = piece.len().min(at + most);
            sent = self.write_part(inputs, &piece[at..end], || parts.keep(at, end));
        }
        sent
    }

    /// The response may name the session that this worker has from now on.
    #[inline]
    fn learn_session(&mut self, piece: &[u8]) {
        if let Some(learner) = &mut self.learner {
            learner.look(self.request.reply.fields(), piece);
        }
    }

    /// Sends a piece as it is that is all the rest of the body, and ends the reply with it.
    #[inline]
    fn write_last_plain(&mut self, inputs: &HeadInputs<'_>, piece: &[u8], keep: impl FnOnce() -> SharedBytes) -> End {
        if piece.len() > encoding::most_of_piece(&self.request.reply) {
            self.write_in_parts(inputs, piece, keep);
            return self.end_plain();
        }
        let request = &mut *self.request;
        request.out.clear();
        if !request.reply.head_sent() {
            encoding::head(&mut request.reply, &mut request.out, inputs);
        }
        let (count, after) = encoding::piece(&mut request.reply, &mut request.out, piece.len() as u64);
        // Only the last of several chunks has something behind it.
        let mut tail = Vec::new();
        tail.extend_from_slice(after);
        let end = encoding::end(&mut request.reply, &mut tail);
        let piece = &piece[..(count as usize).min(piece.len())];
        self.lane.send_last(&mut request.out, piece, &tail, keep);
        self.lane.set_reuse(end == End::Reuse);
        end
    }

    /// Ends the reply after its last piece.
    fn end_plain(&mut self) -> End {
        let request = &mut *self.request;
        request.out.clear();
        let end = encoding::end(&mut request.reply, &mut request.out);
        self.send_out();
        self.lane.set_reuse(end == End::Reuse);
        end
    }

    /// Sends what waits, as far as the socket takes it. For a caller that keeps an exchange whose reply is complete: the answer may
    /// wait for the exchange to be given back.
    pub fn flush(&mut self) {
        if self.lane.is_behind() {
            self.lane.flush();
        }
        if let Some(channel) = self.lane.stream().channel() {
            // Its frames may wait in the trunk.
            let _ = channel.send(&[]);
        }
    }

    /// The application failed, for the scoreboard.
    pub fn app_failed(&mut self) {
        self.timing.end = AppEnd::Failed;
    }

    /// It failed since it was over `request_timeout`.
    pub fn app_was_late(&mut self) {
        self.timing.end = AppEnd::Late;
    }

    /// What became of the request, for the access log.
    pub fn outcome(&self) -> Outcome {
        match (self.lane.link().loss(), self.timing.refused) {
            (Some(Loss::AnsweredFor), _) => Outcome::Late,
            _ if self.timing.end == AppEnd::Late => Outcome::Late,
            (_, Some(kind)) => Outcome::Refused(kind),
            (Some(Loss::TimedOut), None) => Outcome::WriteTimeout,
            (Some(Loss::Gone), None) => Outcome::ClientGone,
            (None, None) => match self.timing.end {
                AppEnd::Failed => Outcome::AppError,
                AppEnd::Leaving => Outcome::Leaving,
                AppEnd::Well | AppEnd::Late | AppEnd::Uncalled => Outcome::Ok,
            },
        }
    }

    /// Answers with the server's own error page, in place of a reply that has not begun, and closes.
    pub fn answer_error(&mut self, status: u16, message: &str) {
        self.answer_error_with(status, message, &[]);
    }

    /// The same with more fields.
    pub fn answer_error_with(&mut self, status: u16, message: &str, fields: &[(&[u8], &[u8])]) {
        self.answered();
        let request = &mut *self.request;
        let line = format!("{status} {}", status::reason(status));
        // The reply counts for the log and the scoreboard; the page is a response of its own.
        let _ = request.reply.status(line.as_bytes());
        request.out.clear();
        self.wall.refresh(self.timing.answered);
        let errors = Responder::of_errors(self.wall.date(), request.head.kind, request.head.version);
        let responder = Responder { request_id: request.reply.request_id(), ..errors };
        let sent = responder.write_page(&mut request.out, status, message, fields).body;
        request.reply.replaced(sent);
        self.send_out();
        self.lane.set_last();
    }

    /// The application has the socket, and has not answered by way of us.
    pub fn is_elsewhere(&self) -> bool {
        self.lane.is_taken() && !self.request.reply.has_status()
    }

    /// The server's own page if nothing was sent yet; the connection is closed in either case.
    pub fn give_up(&mut self, status: u16, message: &str) {
        if self.request.reply.head_sent() || self.is_elsewhere() {
            self.abort();
        } else {
            self.answer_error(status, message);
        }
    }

    /// Gives the reply up: what the client has is incomplete, and the connection says so by closing.
    pub fn abort(&mut self) {
        self.request.out.clear();
        self.send_out();
        self.lane.set_last();
    }

    /// An interim response (103); nothing is sent where the protocol or the state of the reply does not allow it.
    pub fn interim<'f>(
        &mut self,
        status: u16,
        fields: &mut dyn Iterator<Item = (&'f [u8], &'f [u8])>,
    ) -> Result<Sent, Fault> {
        let request = &mut *self.request;
        request.out.clear();
        encoding::interim(&request.reply, &mut request.out, status, fields)?;
        let sent = self.send_out();
        if !self.request.reply.head_sent() && self.lane.has_limit() {
            self.expect_late_answer();
        }
        Ok(sent)
    }

    /// Sends `request.out`.
    pub(crate) fn send_out(&mut self) -> Sent {
        self.lane.send(&mut self.request.out, b"", b"", || Box::new(Vec::new()))
    }

    /// Readable once the job is back that is at what is sent next ([`Room::Away`](room::Room::Away)). `None`: there is none.
    pub fn await_job(&mut self) -> Option<Arc<Alarm>> {
        self.lane.await_job()
    }

    /// The client has not taken all of a reply that is complete; it was not held back for others either.
    #[inline]
    pub fn has_rest(&self) -> bool {
        self.lane.has_rest()
    }

    /// Owners of bytes that are sent or on disk, to be dropped by a thread that holds the GIL.
    pub fn take_spent(&mut self) -> Vec<SharedBytes> {
        self.lane.take_spent()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It is made in place and copied in parts only; what grows here costs every request. Forty bytes are the first segment
    /// of its outbox: each answer that is held back would take and free that much elsewhere.
    #[test]
    fn an_exchange_stays_small() {
        assert!(size_of::<Exchange>() <= 632, "{} bytes", size_of::<Exchange>());
    }
}
