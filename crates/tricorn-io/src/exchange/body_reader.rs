//! Reads the body of a request that has begun before it came: where the framing stands, and how fast the client sends.
use super::buffers::Request;
use super::pace::Pace;
use crate::config::{BodyRate, Config};
use crate::stream::Stream;
use tricorn_proto::http1::{Receiver, Step};
use tricorn_proto::message::Refusal;

/// Most bytes of a body read at a time.
pub const PIECE: usize = 128 * 1024;

#[derive(Default)]
pub struct BodyReader {
    receiver: Receiver,
    pace: Pace,
}

impl BodyReader {
    /// `receiver` has read the head of the request.
    #[inline]
    pub fn new(receiver: Receiver) -> BodyReader {
        BodyReader { receiver, pace: Pace::default() }
    }

    #[inline]
    pub fn into_receiver(self) -> Receiver {
        self.receiver
    }

    /// All of the body was read.
    pub fn is_at_end(&self) -> bool {
        self.receiver.is_at_end()
    }

    /// Bytes that are still to come, if their number is known.
    pub fn fixed_remaining(&self) -> Option<u64> {
        self.receiver.fixed_remaining()
    }

    /// One read: of a body of known length straight to where it is wanted.
    pub fn fill(&mut self, stream: &mut Stream, input: &mut Vec<u8>, out: &mut Vec<u8>) -> rustix::io::Result<usize> {
        let Some(left) = self.receiver.fixed_remaining() else {
            input.reserve(PIECE / 8);
            let room = input.capacity() - input.len();
            return stream.read(input, room);
        };
        let room = PIECE.min(left as usize);
        out.reserve(room);
        let count = stream.read(out, room)?;
        self.receiver.took_fixed(count as u64);
        Ok(count)
    }

    /// Takes the bytes at hand; whether the body is complete.
    pub fn decode(&mut self, request: &mut Request, config: &Config, out: &mut Vec<u8>) -> Result<bool, Box<Refusal>> {
        loop {
            let unread = request.input.get_mut(request.start..).unwrap_or_default();
            let progress = self.receiver.advance(unread, &config.policy, false, &mut request.head)?;
            let from = request.start;
            request.start += progress.consumed;
            match progress.step {
                Step::Body(range) => out.extend_from_slice(&request.input[from + range.start..from + range.end]),
                Step::End => return Ok(true),
                Step::Head | Step::NeedMore => {
                    if request.start == request.input.len() {
                        request.input.truncate(request.head_end);
                        request.start = request.head_end;
                    }
                    return Ok(false);
                }
            }
        }
    }

    /// The application waits for the client from now on; until when it may have to.
    pub fn wait(&mut self, rate: &BodyRate, now: u64) -> u64 {
        self.pace.wait(rate, now)
    }

    pub fn is_waiting(&self) -> bool {
        self.pace.is_waiting()
    }

    /// So many bytes came with the head, and were not waited for.
    pub fn began_with(&mut self, count: u64) {
        self.pace.began_with(count);
    }

    /// So many bytes came, which ends the wait.
    pub fn came(&mut self, count: usize, now: u64) {
        self.pace.came(count, now);
    }

    /// Bytes that came, and whether they are slower than the minimum rate.
    pub fn progress(&self, rate: &BodyRate) -> (u64, bool) {
        (self.pace.bytes(), self.pace.is_slow(rate))
    }
}
