//! What became of a request, in a word. A status alone does not say why: 503 has four reasons, and a 200 may have had no reader.
use crate::message::RefusalKind;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Ok,
    /// The application raised an exception, or broke its protocol.
    AppError,
    /// The client left before it had the response.
    ClientGone,
    /// 503, the application was not called: the queue was full; the request had waited too long; the worker leaves, and its
    /// threads are stuck; there was no memory for heads, or no room for connections.
    QueueFull,
    QueueLate,
    Leaving,
    HeadMemory,
    Evicted,
    /// 504: over `request_timeout`.
    Late,
    /// The client did not take the response in time.
    WriteTimeout,
    /// The rule that the request broke.
    Refused(RefusalKind),
}

impl Outcome {
    pub(super) fn render(self, out: &mut Vec<u8>) {
        let word = match self {
            Outcome::Ok => "ok",
            Outcome::AppError => "app_error",
            Outcome::ClientGone => "client_gone",
            Outcome::QueueFull => "queue_full",
            Outcome::QueueLate => "queue_late",
            Outcome::Leaving => "leaving",
            Outcome::HeadMemory => "head_memory",
            Outcome::Evicted => "evicted",
            Outcome::Late => "late",
            Outcome::WriteTimeout => "write_timeout",
            Outcome::Refused(kind) => {
                out.extend_from_slice(b"refused:");
                kind.name()
            }
        };
        out.extend_from_slice(word.as_bytes());
    }
}
