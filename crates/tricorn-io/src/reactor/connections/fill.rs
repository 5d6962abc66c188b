//! One read of a connection, to where the bytes are wanted.
use super::Connections;
use super::work::Work;
use crate::config::Received;
use crate::exchange::body::{Body, NoMemory};
use crate::exchange::buffers::{INPUT, Request};
use crate::exchange::id::RequestId;
use crate::reactor::bodies::{Ahead, Bodies, no_memory};
use crate::scoreboard::Word;
use crate::stream::Stream;
use crate::sys::poll::Token;
use rustix::io::Errno;
use tricorn_proto::message::{Framing, Refusal};

/// What a read brought.
pub(super) enum Fill {
    Bytes(usize),
    Dry,
    /// The disk is waited for; it will be told when to read on.
    Storing(RequestId),
    Ended,
    Broken,
    Refused(RequestId, Box<Refusal>),
}

impl Connections {
    /// One read, to where the bytes are wanted.
    pub(super) fn fill(&mut self, token: Token) -> Option<Fill> {
        let conn = self.conns.get_mut(token)?;
        if !conn.edges.is_readable() {
            return Some(Fill::Dry);
        }
        let serial = &mut conn.serial;
        let id = serial.current(token);
        let mut reading = serial.begin_reading(|| self.buffers.take());
        let request = &mut *reading.request;
        let stream = conn.output.as_ref()?.stream();
        if self.bodies.is_over_memory()
            && conn.phase.get().is_body()
            && request.head.framing != Framing::None
            && let Err(refusal) = self.bodies.spill(request)
        {
            return Some(Fill::Refused(id, refusal));
        }
        let room = match self.bodies.ahead(id, request) {
            Ok(Ahead::Room(room)) => room.min(Work::burst(stream)),
            Ok(Ahead::Wait) => return Some(Fill::Storing(id)),
            Err(refusal) => return Some(Fill::Refused(id, refusal)),
        };
        let left = reading.body_left();
        let (result, wanted) = match receive(reading.request, left, room, stream, &mut self.bodies) {
            Ok(Filled { result, wanted, of_body }) => {
                if of_body && let Ok(count) = result {
                    reading.took(count);
                }
                (result, wanted)
            }
            Err(refusal) => return Some(Fill::Refused(id, refusal)),
        };
        match result {
            Ok(0) => Some(Fill::Ended),
            Ok(count) => {
                conn.edges.was_read(count == wanted || stream.holds());
                self.work.moved(stream, count);
                self.board.add(Word::BytesIn, count as u64);
                Some(Fill::Bytes(count))
            }
            Err(Errno::INTR) => Some(Fill::Bytes(0)),
            Err(Errno::AGAIN) => {
                conn.edges.is_drained();
                Some(Fill::Dry)
            }
            Err(_) => Some(Fill::Broken),
        }
    }
}

/// What one read came to.
struct Filled {
    result: Received,
    /// How many bytes there was room for.
    wanted: usize,
    /// They are the body's; else they are to be looked at.
    of_body: bool,
}

/// One read of up to `room` bytes, to where they are wanted. `left`: of a body of known length.
fn receive(
    request: &mut Request,
    left: Option<u64>,
    room: usize,
    stream: &Stream,
    bodies: &mut Bodies,
) -> Result<Filled, Box<Refusal>> {
    let room = left.map_or(room, |left| room.min(usize::try_from(left).unwrap_or(usize::MAX)));
    let filled = |result, wanted, of_body| Ok(Filled { result, wanted, of_body });
    // Room was made when the head was read; untouched memory costs nothing.
    if let (Some(left), Body::Memory(bytes)) = (left, &mut request.body)
        && bytes.try_reserve_exact(left as usize).is_err()
    {
        bodies.spill(request)?;
    }
    match (left, &mut request.body) {
        (Some(_), Body::Memory(bytes)) => {
            let result = stream.read(bytes, room);
            bodies.hold(result.unwrap_or(0), &mut request.counted.memory);
            filled(result, room, true)
        }
        (Some(_), Body::Foreign(buffer)) => {
            let result = buffer.receive(stream, room);
            bodies.hold(result.unwrap_or(0), &mut request.counted.memory);
            filled(result, room, true)
        }
        (Some(_), Body::Spooled(_)) => filled(bodies.receive(request, stream, room)?, room, true),
        _ => {
            let input = &mut request.input;
            if input.capacity() - input.len() < INPUT / 4 {
                input.try_reserve(INPUT.max(input.len())).map_err(|_| no_memory(NoMemory))?;
            }
            let room = input.capacity() - input.len();
            filled(stream.read(input, room), room, false)
        }
    }
}
