//! The response: what the protocol writes is taken apart (`ResponseParser`) and said again by the reply machine.
use super::aiohttp;
use super::connection::{Reading, State, Transport};
use super::events;
use super::outcome::Outcome;
use crate::panics::{self, Panicked};
use crate::pieces::{Piece, write_file};
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::os::fd::RawFd;
use tricorn_io::{Engine, Exchange, IsLast, Phase, Sent};
use tricorn_proto::http1::{Part, ResponseParser};
use tricorn_proto::message::Method;
use tricorn_proto::response::{End, Fault};

/// Writes what the protocol has to say.
pub fn put(slf: &Bound<'_, Transport>, data: &Bound<'_, PyAny>) -> PyResult<()> {
    let (this, py) = (slf.get(), slf.py());
    let request = this.state().request.take();
    let route = request.map(|request| aiohttp::place_of(&this.ground.shared.routes, request.bind(py)));
    let bytes = match data.cast::<PyBytes>() {
        Ok(bytes) => bytes.clone(),
        Err(_) => PyBytes::new(py, &PyBuffer::<u8>::get(data)?.to_vec(py)?),
    };
    with(slf, bytes.as_bytes().len(), |engine, exchange, parser, said| {
        if let Some(route) = route {
            exchange.timing.route = route;
        }
        Speech { engine, exchange, said, bytes: &bytes }.speak(parser)
    })
}

/// Sends a piece of a file as the next of the body; false if it has to be written as other pieces are.
pub fn put_file(slf: &Bound<'_, Transport>, descriptor: RawFd, offset: u64, count: u64) -> PyResult<bool> {
    let file = tricorn_io::duplicate(descriptor).map_err(std::io::Error::from)?;
    let mut fits = false;
    with(slf, 0, |engine, exchange, parser, _| {
        // What is compressed has to be read; aiohttp reads it, in another thread.
        let reply = &exchange.request.reply;
        if !reply.head_sent() || reply.is_compressed() || !parser.skip(count) {
            return Outcome::Goes;
        }
        fits = true;
        let is_last = if matches!(parser.advance(b""), Ok((_, Part::End))) { IsLast::Yes } else { IsLast::No };
        let sent = write_file(slf.py(), (engine, &mut *exchange), file, (offset, count), None, is_last);
        match (sent, is_last) {
            (Sent::Gone, _) => Outcome::Gone,
            (_, IsLast::Yes) => {
                exchange.answered();
                exchange.end();
                Outcome::Complete
            }
            _ => Outcome::Goes,
        }
    })?;
    Ok(fits)
}

/// The handler is done with its response. One that is shorter than it says is cut off, and with it the connection: the client
/// would wait for the rest.
pub fn end_response(slf: &Bound<'_, Transport>) -> PyResult<()> {
    let (this, py) = (slf.get(), slf.py());
    if this.state().active.is_away() {
        return Ok(()); // nearly always: it was complete, and the connection is the reactor's again
    }
    let mut is_short = false;
    with(slf, 0, |_, exchange, parser, _| {
        if parser.lacks_bytes() {
            is_short = true;
            exchange.answered();
            if let End::Short { missing } = exchange.end() {
                this.ground.shared.reporter.complain(py, exchange, missing);
            }
        }
        Outcome::Goes
    })?;
    if !is_short {
        return Ok(());
    }
    this.state().answered = true;
    this.lose(py, None);
    this.complete(py)
}

/// Works on the exchange, with so many bytes, and does what follows. The state is free meanwhile, without the exchange and its parser.
fn with(
    slf: &Bound<'_, Transport>,
    bytes: usize,
    work: impl FnOnce(&Engine, &mut Exchange, &mut ResponseParser, &mut Said) -> Outcome,
) -> PyResult<()> {
    let this = slf.get();
    let engine = &this.ground.shared.engine;
    let (mut exchange, mut parser, mut said) = {
        let mut state = this.state();
        // asyncio's transports drop what is written after their end, too.
        let Some(exchange) = state.active.take() else { return Ok(()) };
        let said = Said { is_asked: state.reading == Reading::Asked, ..Said::default() };
        (exchange, std::mem::take(&mut state.parser), said)
    };
    let worked = panics::caught(|| work(engine, &mut exchange, &mut parser, &mut said));
    let mut outcome = worked.unwrap_or_else(|Panicked(text)| {
        this.ground.shared.reporter.panicked(slf.py(), text);
        exchange.abort();
        Outcome::Gone
    });
    {
        let mut state = this.state();
        state.hear(said);
        state.answered |= matches!(outcome, Outcome::Complete);
        state.parser = parser;
        let ends = state.ends_soon && matches!(outcome, Outcome::Goes) && exchange.is_between_events();
        state.active.put(exchange);
        state.active.wrote(engine);
        if ends {
            outcome = Outcome::Closes;
        } else if matches!(outcome, Outcome::Behind) {
            outcome = await_room(engine, &mut state);
        }
    }
    let shared = &this.ground.shared;
    if matches!(outcome, Outcome::Goes) && shared.goes_on(bytes) && shared.gives_way() {
        outcome = Outcome::GivesWay;
    }
    events::after_write(slf, outcome)
}

/// The client is behind: how long it may be, unless it no longer is. Nothing where the protocol was told already.
fn await_room(engine: &Engine, state: &mut State) -> Outcome {
    if state.active.is_stalled() {
        return Outcome::Goes;
    }
    match state.active.stall(engine) {
        None => Outcome::Behind,
        Some(Sent::Gone) => Outcome::Gone,
        Some(_) => Outcome::Goes,
    }
}

/// What a write has said of the connection, beside what was sent.
#[derive(Default)]
struct Said {
    /// The client waits to be told that it may send its body.
    is_asked: bool,
    /// It was told so.
    allows: bool,
    /// The response says that the connection ends with it.
    will_close: bool,
    /// The connection speaks another protocol from now on, of which the client has sent this.
    tunnel: Option<Vec<u8>>,
    /// Bytes written to the tunnel.
    tunnelled: u64,
}

impl State {
    #[inline]
    fn hear(&mut self, said: Said) {
        if said.allows {
            self.reading = Reading::Open;
        }
        self.will_close |= said.will_close;
        if let Some(unread) = said.tunnel {
            self.tunnel = true;
            self.unread = unread;
            self.reading = Reading::Done;
        }
        self.tunnelled += said.tunnelled;
    }
}

/// One write under way.
struct Speech<'a, 'py> {
    engine: &'a Engine,
    exchange: &'a mut Exchange,
    said: &'a mut Said,
    bytes: &'a Bound<'py, PyBytes>,
}

impl Speech<'_, '_> {
    fn speak(&mut self, parser: &mut ResponseParser) -> Outcome {
        let all = self.bytes.as_bytes();
        let mut at = 0;
        let mut may_read = false;
        // A head, or a piece of the body, waits for what comes next: the last piece goes out together with the end.
        let mut waits: Option<(usize, usize)> = None;
        let mut sent = Sent::Accepted;
        loop {
            let (taken, part) = match parser.advance(&all[at..]) {
                Ok(step) => step,
                Err(wrong) => return Outcome::Wrong(wrong.0.into()),
            };
            let from = at;
            at += taken;
            if let Part::End = part {
                let (start, end) = waits.unwrap_or_default();
                self.last(start, end);
                return Outcome::Complete;
            }
            if let Some((start, end)) = waits.take()
                && !(start == end && matches!(part, Part::Body(_)))
            {
                sent = worse(sent, self.piece(start, end));
            }
            match part {
                Part::More => break,
                Part::Interim(100) => may_read |= self.allow(),
                Part::Interim(status) => {
                    if let Err(fault) = self.exchange.interim(status, &mut parser.fields()) {
                        return Outcome::Wrong(fault.to_string());
                    }
                }
                Part::Head => {
                    if let Err(fault) = self.head(parser) {
                        return Outcome::Wrong(fault.to_string());
                    }
                    waits = Some((0, 0));
                    if self.switches(parser) {
                        sent = worse(sent, self.piece(0, 0));
                        waits = None;
                        self.exchange.lane.switch();
                        self.engine.note_phase(self.exchange, Phase::Upgraded);
                        self.said.tunnel = Some(self.engine.take_unread(self.exchange));
                        may_read = true;
                    }
                }
                Part::Body(range) => waits = Some((from + range.start, from + range.end)),
                Part::Tunnel(range) => {
                    let (start, end) = (from + range.start, from + range.end);
                    self.said.tunnelled += (end - start) as u64;
                    let keep = || Piece::part(self.bytes, start..end).kept();
                    sent = worse(sent, self.engine.write_raw(self.exchange, &all[start..end], keep));
                }
                Part::End => {}
            }
        }
        match sent {
            Sent::Gone => Outcome::Gone,
            Sent::OverMark => Outcome::Behind,
            Sent::Accepted if may_read => Outcome::MayRead,
            Sent::Accepted => Outcome::Goes,
        }
    }

    /// The protocol lets the client send its body; the reactor tells it so when it is about to read.
    fn allow(&mut self) -> bool {
        self.said.allows |= self.said.is_asked;
        std::mem::take(&mut self.said.is_asked)
    }

    /// Whether another protocol follows the head.
    fn switches(&self, parser: &ResponseParser) -> bool {
        parser.status_line().starts_with(b"101")
    }

    fn head(&mut self, parser: &ResponseParser) -> Result<(), Fault> {
        let switches_stream = self.switches(parser) && self.exchange.request.head.kind == Method::Tunnel;
        let reply = &mut self.exchange.request.reply;
        // RFC 8441 section 5: 200, and no field that proves that the key was read.
        reply.status(if switches_stream { b"200 OK" } else { parser.status_line() })?;
        for (name, value) in parser.fields() {
            if switches_stream && name.eq_ignore_ascii_case(b"sec-websocket-accept") {
                continue;
            }
            self.said.will_close |= name.eq_ignore_ascii_case(b"connection") && value.eq_ignore_ascii_case(b"close");
            reply.field(name, value)?;
        }
        Ok(())
    }

    /// A piece of which more are to come; the head before the first one.
    fn piece(&mut self, start: usize, end: usize) -> Sent {
        self.exchange.foresee_close_unread(false);
        Piece::part(self.bytes, start..end).write(self.engine, self.exchange, None)
    }

    /// The last piece, and the end.
    fn last(&mut self, start: usize, end: usize) {
        self.exchange.foresee_close_unread(true);
        self.exchange.answered();
        Piece::part(self.bytes, start..end).write_last(self.engine, self.exchange);
        self.exchange.flush(); // the protocol may go on
    }
}

fn worse(one: Sent, other: Sent) -> Sent {
    match (one, other) {
        (Sent::Gone, _) | (_, Sent::Gone) => Sent::Gone,
        (Sent::OverMark, _) | (_, Sent::OverMark) => Sent::OverMark,
        _ => Sent::Accepted,
    }
}
