//! Where a body goes: memory, the gateway's own buffer, or the disk.
use super::work::Runner;
use crate::config::{self, Config};
use crate::exchange::body::{Body, NoMemory};
use crate::exchange::buffers::Request;
use crate::exchange::encoding::allowance;
use crate::reactor::bodies::{Bodies, no_memory};
use crate::scoreboard::{Scoreboard, Word};
use crate::stream::Stream;
use std::ops::Range;
use tricorn_proto::message::{Framing, Refusal};

/// Bodies from this length on that came with their heads go straight to the gateway's own buffers.
const BYTES: u64 = 1024;

/// Decides where the body goes.
pub(super) fn begin_body(
    request: &mut Request,
    config: &Config,
    bodies: &Bodies,
    runner: Runner,
) -> Result<(), Box<Refusal>> {
    let allocate = config.allocate.filter(|_| runner == Runner::AppThread);
    let length = match request.head.framing {
        Framing::Length(length) => length,
        Framing::Chunked | Framing::None => 0,
    };
    if config.streaming {
        let at_hand = request.unread().len() as u64;
        let all = allocate.filter(|_| (BYTES..=at_hand).contains(&length)).and_then(|make| make(length as usize));
        request.body = all.map_or(Body::Memory(Vec::new()), Body::Foreign);
        return Ok(());
    }
    let fits = usize::try_from(length).is_ok_and(|length| bodies.fits(0, length));
    let foreign = || allocate.filter(|_| length as usize >= config::FOREIGN).and_then(|make| make(length as usize));
    // A body that memory has no room for becomes a spool with its first piece, in `keep`.
    request.body = if !fits {
        bodies.admit(length, length)?;
        Body::Empty
    } else if let Some(buffer) = foreign() {
        Body::Foreign(buffer)
    } else {
        let mut bytes = Vec::new();
        if bytes.try_reserve_exact(length as usize).is_ok() { Body::Memory(bytes) } else { Body::Empty }
    };
    Ok(())
}

/// Adds a piece of the input to the body: in memory while that may grow, else on disk.
pub(super) fn keep(
    request: &mut Request,
    piece: Range<usize>,
    config: &Config,
    bodies: &mut Bodies,
) -> Result<(), Box<Refusal>> {
    let count = piece.len();
    let fits = config.streaming // there is no more of it than was read at once
        || bodies.fits(request.counted.memory, count);
    let has_memory = match &mut request.body {
        Body::Memory(memory) => fits && memory.try_reserve(count).is_ok(),
        Body::Foreign(_) => fits,
        Body::Empty | Body::Spooled(_) => false,
    };
    if !has_memory {
        if config.streaming {
            return Err(no_memory(NoMemory));
        }
        bodies.spill(request)?;
        return bodies.append(request, piece);
    }
    let Request { input, body, counted, .. } = request;
    let bytes = input.get(piece).unwrap_or_default();
    match body {
        Body::Memory(memory) => memory.extend_from_slice(bytes),
        Body::Foreign(buffer) => buffer.append(bytes),
        Body::Empty | Body::Spooled(_) => {}
    }
    bodies.hold(count, &mut counted.memory);
    Ok(())
}

/// Tells a client that waits for it that it may send the body, unless the application does so when it reads.
pub(super) fn invite(stream: Option<&Stream>, request: &Request, config: &Config, board: Scoreboard) {
    if let Some(stream) = stream
        && !config.streaming
        && request.awaits_continue()
    {
        let sent = stream.send_once(allowance(request.head.version));
        board.add(Word::BytesOut, sent as u64);
    }
}
