//! Replies that last: how the server ends those that would outlive their worker, and keeps silent ones open.
use super::{AppEnd, Exchange, Sent};
use tricorn_proto::message::Method;
use tricorn_proto::response::HeadInputs;

impl Exchange {
    /// Whether the reply is an event stream under way.
    #[inline]
    pub fn streams_events(&self) -> bool {
        self.request.reply.events().is_some()
    }

    /// Whether its client opens the stream again when it ends: an EventSource does, and asks by GET. The response to a POST answers
    /// that one request, and no client repeats it by itself.
    pub fn is_resumable(&self) -> bool {
        self.streams_events() && self.request.head.kind == Method::Get
    }

    /// Whether the reply is under way, and has no length that says when it ends.
    pub fn is_open_ended(&self) -> bool {
        let reply = &self.request.reply;
        reply.head_sent() && reply.content_length().is_none() && !self.is_gone() && !self.is_elsewhere()
    }

    /// Ends the reply since the worker leaves. An event stream that stands between two events ends properly, after a `retry` field
    /// with so many milliseconds; everything else is cut off.
    pub(crate) fn close_stream(&mut self, retry: Option<u32>) {
        self.timing.end = AppEnd::Leaving;
        if !self.is_between_events() {
            self.abort();
            return;
        }
        // The head has promised to keep the connection. Its end comes with that of the stream, so that the client does not take the
        // connection for its next request, which would be lost (RFC 9112 section 9.6).
        self.lane.hold_until_end();
        if let Some(millis) = retry {
            self.insert(format!("retry: {millis}\n\n").as_bytes());
        }
        self.answered();
        self.end();
        self.lane.set_last();
        self.lane.end_sending();
    }

    /// Whether the reply is an event stream that stands between two events: between them the server may write, and end it.
    pub fn is_between_events(&self) -> bool {
        !self.is_gone() && self.request.reply.events().is_some_and(|events| events.is_between_events())
    }

    /// Sends a comment, if the reply stands between two events.
    pub(crate) fn ping_events(&mut self) -> Sent {
        if self.is_between_events() { self.insert(b": ping\n\n") } else { Sent::Accepted }
    }

    fn insert(&mut self, text: &[u8]) -> Sent {
        self.write(&HeadInputs::default(), text, || Box::new(text.to_vec()))
    }
}
