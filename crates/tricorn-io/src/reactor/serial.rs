//! Requests one after another, each answered before the next one begins: those of a connection of HTTP/1, or the one of a stream.
//!
//! ```text
//!              bytes                     take_request, begin
//!   (empty) ───────────▶ request `number` ──────────────────▶ under way: `number - 1`
//!      ▲                   ▲                                      │ bytes behind it (pipelined)
//!      │                   └──────────── keep_excess ◀────────────┤
//!      └──────────────────────────────────────────────────────────┘ there were none
//! ```
//!
//! The next one is not looked at before [`Serial::next_request`].
use super::wheel::Tick;
use crate::exchange::buffers::Request;
use crate::exchange::id::RequestId;
use crate::sys::poll::Token;
use tricorn_proto::http1::{HeadPolicy, Receiver, Step};
use tricorn_proto::message::{Refusal, Version};

#[derive(Debug, Default)]
pub struct Serial {
    receiver: Receiver,
    /// Which of the connection's requests is being read, or waits. The one before it is under way, or was answered.
    number: u32,
    /// From when on a request is the connection's last (`lifetime.rs`); 0: never.
    last_from: Tick,
    /// None of its bytes has come while this is empty, so that an idle connection costs little.
    request: Option<Box<Request>>,
}

impl Serial {
    /// The request that is being read, or waits.
    #[inline]
    pub fn current(&self, connection: Token) -> RequestId {
        RequestId::new(connection, self.number)
    }

    /// The connection is new here: it has had so many requests in another worker, and its age.
    pub fn resume_at(&mut self, number: u32, last_from: Tick) {
        (self.number, self.last_from) = (number, last_from);
    }

    /// From when on a request is the last; 0: never.
    #[inline]
    pub fn last_from(&self) -> Tick {
        self.last_from
    }

    /// The request before it, which is under way.
    #[inline]
    pub fn begun(&self, connection: Token) -> RequestId {
        RequestId::new(connection, self.number.wrapping_sub(1))
    }

    #[inline]
    pub fn is_current(&self, id: RequestId) -> bool {
        id.stream() == self.number
    }

    #[inline]
    pub fn is_begun(&self, id: RequestId) -> bool {
        id.stream() == self.number.wrapping_sub(1)
    }

    #[inline]
    pub fn request(&self, id: RequestId) -> Option<&Request> {
        self.request.as_deref().filter(|_| self.is_current(id))
    }

    #[inline]
    pub fn request_mut(&mut self, id: RequestId) -> Option<&mut Request> {
        if self.is_current(id) { self.request.as_deref_mut() } else { None }
    }

    /// Takes the request, to be answered without the application.
    #[inline]
    pub fn take_request(&mut self, id: RequestId) -> Option<Box<Request>> {
        let request = if self.is_current(id) { self.request.take() } else { None }?;
        self.number = self.number.wrapping_add(1);
        Some(request)
    }

    /// The same for the application, with what reads the rest of the body where that is still to come.
    #[inline]
    pub fn begin(&mut self, id: RequestId) -> Option<(Box<Request>, Receiver)> {
        let request = self.take_request(id)?;
        let receiver = if request.partial { std::mem::take(&mut self.receiver) } else { Receiver::default() };
        Some((request, receiver))
    }

    /// The exchange has given back what reads bodies. One that has read nothing is of no use.
    #[inline]
    pub fn take_back(&mut self, receiver: Receiver) {
        if !receiver.is_idle() {
            self.receiver = receiver;
        }
    }

    /// Bytes came behind the request under way: the next one begins with them.
    pub fn keep_excess(&mut self, next: Box<Request>) {
        self.request = Some(next);
    }

    /// Takes them back, for a protocol that follows the request under way.
    pub fn take_unread(&mut self, id: RequestId) -> Option<Box<Request>> {
        if self.is_begun(id) { self.request.take() } else { None }
    }

    /// The reply to the request under way is sent.
    #[inline]
    pub fn next_request(&mut self) {
        self.receiver.next_request();
    }

    /// The request was answered from where it is, and its buffers are the next one's. `now`: when the bytes came that are left.
    pub fn answered_in_place(&mut self, now: u64) {
        self.number = self.number.wrapping_add(1);
        let Some(request) = self.request.as_deref_mut() else { return };
        request.input.drain(..request.start);
        request.times.first_byte = if request.input.is_empty() { 0 } else { now };
        (request.start, request.head_at, request.head_end) = (0, 0, 0);
    }

    /// The request that is being read; `None`: no byte of it has come.
    #[inline]
    pub fn reading(&mut self) -> Option<Reading<'_>> {
        Some(Reading { receiver: &mut self.receiver, request: self.request.as_deref_mut()? })
    }

    /// The same, to be read to: a `fresh` one if no byte of it has come.
    #[inline]
    pub fn begin_reading(&mut self, fresh: impl FnOnce() -> Box<Request>) -> Reading<'_> {
        Reading { receiver: &mut self.receiver, request: self.request.get_or_insert_with(fresh) }
    }

    /// Of the body that is being read, if its length is known: bytes that are still to come.
    pub fn body_left(&self) -> Option<u64> {
        self.receiver.fixed_remaining()
    }

    /// Whether bytes of the request have come.
    #[inline]
    pub fn holds_input(&self) -> bool {
        self.request.is_some()
    }

    /// Takes what is being read, or waits: it is given up, or none of its bytes has come.
    #[inline]
    pub fn end(&mut self) -> Option<Box<Request>> {
        self.request.take()
    }
}

/// A request that is being read, and how far.
pub struct Reading<'w> {
    receiver: &'w mut Receiver,
    pub request: &'w mut Request,
}

impl Reading<'_> {
    /// Bytes are there. `now`: when they came, 0 for bytes that came earlier.
    #[inline]
    pub fn came(&mut self, now: u64) {
        let times = &mut self.request.times;
        times.first_byte = if times.first_byte == 0 { now } else { times.first_byte };
    }

    /// Takes one step through the bytes at hand: what it came to, and where its bytes begin in the input.
    #[inline]
    pub fn advance(&mut self, policy: &HeadPolicy, trusted: bool) -> Result<(usize, Step), Box<Refusal>> {
        let Request { input, start, head, .. } = &mut *self.request;
        let unread = input.get_mut(*start..).unwrap_or_default();
        let progress = self.receiver.advance(unread, policy, trusted, head)?;
        let from = *start;
        *start += progress.consumed;
        Ok((from, progress.step))
    }

    /// The head came as vars, and is read.
    pub fn note_vars(&mut self) {
        self.request.note_vars();
        if let Version::FastCgi(id) = self.request.head.version {
            self.receiver.follow_records(id);
        }
    }

    /// What is answered at once to something else that came.
    #[inline]
    pub fn take_answer(&mut self) -> Option<Vec<u8>> {
        self.receiver.take_answer()
    }

    /// Of a body of known length: bytes that are still to come.
    pub fn body_left(&self) -> Option<u64> {
        self.receiver.fixed_remaining()
    }

    /// So many bytes of such a body were read to where they are wanted.
    pub fn took(&mut self, count: usize) {
        self.receiver.took_fixed(count as u64);
    }

    /// All of the body was read by another worker.
    pub fn took_body(&mut self) {
        self.receiver.took_body();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONNECTION: Token = 7;

    /// Bytes of a request have come.
    fn with(input: &[u8]) -> Serial {
        let mut serial = Serial::default();
        serial.begin_reading(Box::default).request.input.extend_from_slice(input);
        serial
    }

    fn input(serial: &Serial) -> Option<&[u8]> {
        serial.request(serial.current(CONNECTION)).map(|request| request.input.as_slice())
    }

    #[test]
    fn a_late_id_does_not_reach_the_next_request() {
        let mut serial = with(b"first");
        let first = serial.current(CONNECTION);
        assert!(serial.request(first).is_some() && !serial.is_begun(first));
        assert!(serial.take_request(first).is_some());
        assert!(serial.is_begun(first) && serial.begun(CONNECTION) == first);
        serial.next_request();
        serial.begin_reading(Box::default);
        assert!(serial.request(first).is_none() && serial.request_mut(first).is_none());
        assert!(serial.take_request(first).is_none());
        let second = serial.current(CONNECTION);
        assert!(serial.take_request(second).is_some());
        assert!(serial.is_begun(second) && !serial.is_begun(first));
    }

    #[test]
    fn bytes_behind_a_request_are_the_next_ones_and_not_its_own() {
        let mut serial = with(b"first");
        let first = serial.current(CONNECTION);
        serial.take_request(first);
        serial.keep_excess(Box::new(Request { input: b"second".to_vec(), ..Request::default() }));
        assert!(serial.holds_input() && serial.request(first).is_none());
        serial.next_request();
        assert_eq!(input(&serial), Some(b"second".as_slice()));
    }

    #[test]
    fn a_protocol_that_follows_a_request_gets_the_bytes_behind_it() {
        let mut serial = with(b"first");
        let first = serial.current(CONNECTION);
        assert!(serial.take_unread(first).is_none(), "it has not begun");
        serial.take_request(first);
        serial.keep_excess(Box::new(Request { input: b"frames".to_vec(), ..Request::default() }));
        let unread = serial.take_unread(first).map(|request| request.input);
        assert_eq!((unread, serial.holds_input()), (Some(b"frames".to_vec()), false));
    }

    #[test]
    fn a_request_that_is_answered_in_place_leaves_its_buffers_to_the_next() {
        let mut serial = with(b"GET / HTTP/1.1\r\n\r\nGET /next");
        let first = serial.current(CONNECTION);
        let request = serial.request_mut(first).expect("it is being read");
        (request.start, request.head_end) = (18, 18);
        serial.answered_in_place(5);
        assert!(serial.request(first).is_none());
        assert_eq!(input(&serial), Some(b"GET /next".as_slice()));
        assert_eq!(
            serial.reading().map(|reading| (reading.request.start, reading.request.times.first_byte)),
            Some((0, 5))
        );
    }

    #[test]
    fn numbers_go_round() {
        let mut serial = Serial { number: u32::MAX, ..with(b"last") };
        let last = serial.current(CONNECTION);
        serial.take_request(last);
        assert!(serial.is_begun(last));
        assert_ne!(serial.current(CONNECTION), last);
    }
}
