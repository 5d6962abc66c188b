//! One request under way at an event loop: what the events of its connection mean for it. No Python.
//!
//! ```text
//!   events, timers (`Readiness`) ──▶ on ──▶ Effects: bytes, room, a departure, a refusal ──▶ the gateway's own words:
//!                                                                   futures, a listener, methods of a protocol
//!   the application asks for its body ──▶ read ──▶ Read
//!   a write found its client too far behind ──▶ stall ──▶ Effects::writable, or a departure
//! ```
//!
//! A client that closes its sending side, the same for all gateways:
//!
//! ```text
//!   Open ──FIN while the body is to be read──▶ Pending ──last byte read──┐
//!     └──────────────────FIN───────────────────────────────────▶ HalfClosed ──grace──▶ Departure::Overdue
//! ```
//!
//! The application may finish its response for as long as `grace` lasts, and longer while the client takes it (its speed is
//! judged by the room timer). Every wait has a timer of its own (`timers.rs`).
use crate::clock;
use crate::engine::Engine;
use crate::exchange::body::Body;
use crate::exchange::incoming::Incoming;
use crate::exchange::patience::Patience;
use crate::exchange::timers::{Due, Timer};
use crate::exchange::{Exchange, Sent};
use crate::reactor::Readiness;
use tricorn_proto::message::Refusal;

#[derive(Default)]
pub struct Active {
    /// While nothing works at it.
    exchange: Option<Box<Exchange>>,
    /// The client is too far behind to be sent more.
    stall: Option<Patience>,
    half_close: HalfClose,
    grace: Grace,
}

/// What a client may expect that has closed its sending side.
#[derive(Debug, Clone, Copy, Default)]
pub struct Grace {
    /// Nanoseconds until the end of its request.
    pub nanos: u64,
    /// It holds for those too who read an event stream. They have left otherwise: browsers and HTTP clients close both sides.
    pub for_events: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum HalfClose {
    #[default]
    Open,
    /// Seen while the body was to be read: all of it may be there.
    Pending,
    /// The gateway was told.
    HalfClosed,
}

/// How a client departs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Departure {
    /// It has closed its sending side. Most such clients have left, and some wait for their response.
    HalfClosed,
    /// The grace of a half-closed client is over.
    Overdue,
    /// The connection is broken: nothing that is sent arrives.
    Broken,
}

/// What an event means for the request.
#[derive(Debug, Default)]
pub struct Effects {
    /// There may be more to be read, and the application waits for it.
    pub readable: bool,
    /// The client has caught up, or never will.
    pub writable: bool,
    pub departure: Option<Departure>,
    /// The request's body is late.
    pub refusal: Option<Box<Refusal>>,
}

/// What asking for more of the body came to.
#[derive(Debug)]
pub enum Read {
    /// Bytes were added to the buffer given; none only if this is the `last` of them.
    Bytes { last: bool, departure: Option<Departure> },
    /// There are none now. `is_new`: the wait begins.
    Wait { is_new: bool },
    /// The client has left.
    Gone,
    /// The body is not as it should be, or late.
    Refused(Box<Refusal>),
}

impl Active {
    #[inline]
    pub fn new(exchange: Box<Exchange>, grace: Grace) -> Active {
        Active { exchange: Some(exchange), grace, ..Active::default() }
    }

    #[inline]
    pub fn exchange(&self) -> Option<&Exchange> {
        self.exchange.as_deref()
    }

    #[inline]
    pub fn exchange_mut(&mut self) -> Option<&mut Exchange> {
        self.exchange.as_deref_mut()
    }

    /// The request is over, or something works at it.
    #[inline]
    pub fn is_away(&self) -> bool {
        self.exchange.is_none()
    }

    /// Takes the exchange, to work at it without a lock or to end it.
    #[inline]
    pub fn take(&mut self) -> Option<Box<Exchange>> {
        self.exchange.take()
    }

    /// The work at it is done.
    #[inline]
    pub fn put(&mut self, exchange: Box<Exchange>) {
        self.exchange = Some(exchange);
    }

    /// The request is over: what waits for room waits no longer. Whether something did.
    #[inline]
    pub fn end(&mut self) -> bool {
        self.stall.take().is_some()
    }

    /// Something has happened to the connection.
    pub fn on(&mut self, engine: &Engine, readiness: Readiness) -> Effects {
        let mut effects = Effects::default();
        let Some(exchange) = &mut self.exchange else { return effects };
        let is_tunnel = exchange.lane.has_switched();
        let due = if readiness.expired { engine.take_due(exchange) } else { Due::default() };
        let has_left = readiness.hangup && !is_tunnel && exchange.streams_events() && !self.grace.for_events;
        if readiness.broken || has_left {
            exchange.client_left();
            effects.departure = Some(Departure::Broken);
        } else if readiness.hangup && !is_tunnel {
            effects.departure = self.half_closed(engine);
        }
        if due.has(Timer::Ping) && self.ping(engine) == Sent::Gone {
            effects.departure = Some(Departure::Broken);
        }
        if due.has(Timer::HalfClose) {
            effects.departure = effects.departure.max(self.grace_is_over(engine));
        }
        if self.stall.is_some()
            && (readiness.writable || readiness.broken || due.has(Timer::Room))
            && let Some(sent) = self.stall(engine)
        {
            effects.writable = true;
            if sent == Sent::Gone {
                effects.departure = Some(Departure::Broken);
            }
        }
        let Some(exchange) = &mut self.exchange else { return effects };
        let is_late = due.has(Timer::Body);
        if is_late && effects.departure != Some(Departure::Broken) {
            effects.refusal = exchange.body_is_late(engine.config()).map(Box::new);
        }
        effects.readable = (is_tunnel || exchange.awaits_body()) && (readiness.readable || readiness.hangup || is_late);
        effects
    }

    /// The client has closed its sending side. What that means now, if it means anything new.
    fn half_closed(&mut self, engine: &Engine) -> Option<Departure> {
        if self.is_partial() {
            self.half_close = HalfClose::Pending; // what it sent before may all be there
            return None;
        }
        (self.half_close != HalfClose::HalfClosed).then(|| self.begin_grace(engine, Departure::HalfClosed))
    }

    fn grace_is_over(&mut self, engine: &Engine) -> Option<Departure> {
        if self.stall.is_none() {
            return Some(Departure::Overdue);
        }
        self.arm_grace(engine); // it takes its response: how fast is judged by another timer
        None
    }

    /// From now on the request has its grace. What this departure means: without a grace it is overdue already.
    pub fn begin_grace(&mut self, engine: &Engine, departure: Departure) -> Departure {
        if self.half_close == HalfClose::HalfClosed {
            return departure; // it has begun before
        }
        self.half_close = HalfClose::HalfClosed;
        if self.grace.nanos == 0 {
            return Departure::Overdue;
        }
        self.arm_grace(engine);
        departure
    }

    /// Begins the grace again. Whether there is one.
    pub fn renew_grace(&mut self, engine: &Engine) -> bool {
        if self.grace.nanos > 0 {
            self.arm_grace(engine);
        }
        self.grace.nanos > 0
    }

    fn arm_grace(&mut self, engine: &Engine) {
        if let Some(exchange) = &mut self.exchange {
            engine.set_timer(exchange, Timer::HalfClose, clock::now().saturating_add(self.grace.nanos));
        }
    }

    /// A piece of the response was written: if it is an event stream, its silence begins.
    #[inline]
    pub fn wrote(&mut self, engine: &Engine) {
        let interval = engine.config().sse_ping;
        if interval > 0
            && let Some(exchange) = self.exchange.as_mut().filter(|exchange| exchange.streams_events())
        {
            engine.set_timer(exchange, Timer::Ping, clock::now().saturating_add(interval));
        }
    }

    /// The event stream was silent for as long as it may be.
    fn ping(&mut self, engine: &Engine) -> Sent {
        let is_behind = self.stall.is_some();
        let sent = match &mut self.exchange {
            Some(exchange) if !is_behind => exchange.ping_events(),
            _ => Sent::Accepted,
        };
        self.wrote(engine);
        sent
    }

    /// What came of the body with the head, at its first call.
    pub fn take_first(&mut self) -> Body {
        self.exchange.as_mut().map_or(Body::Empty, |exchange| exchange.take_body())
    }

    /// Whether more of the body is to come.
    pub fn is_partial(&self) -> bool {
        self.exchange.as_ref().is_some_and(|exchange| exchange.is_partial())
    }

    /// Reads what has come of the body; what has not is waited for from now on.
    pub fn read(&mut self, engine: &Engine, out: &mut Vec<u8>) -> Read {
        let Some(exchange) = &mut self.exchange else { return Read::Gone };
        let is_new = !exchange.awaits_body();
        match engine.read_body(exchange, out) {
            Incoming::Bytes { last } => {
                let was_pending = last && self.half_close == HalfClose::Pending;
                let departure = was_pending.then(|| self.begin_grace(engine, Departure::HalfClosed));
                Read::Bytes { last, departure }
            }
            Incoming::Wait => Read::Wait { is_new },
            Incoming::Gone => Read::Gone,
            Incoming::Refused(refusal) => Read::Refused(refusal),
        }
    }

    /// The application does not wait for more of the body: from now on the time is not the client's.
    pub fn stop_reading(&mut self, engine: &Engine) {
        if let Some(exchange) = self.exchange.as_mut().filter(|exchange| exchange.awaits_body()) {
            exchange.body_came(0, clock::now());
            engine.note_wait(exchange, false);
        }
    }

    /// The client is too far behind. `None`: the application has to wait, until [`Effects::writable`].
    pub fn stall(&mut self, engine: &Engine) -> Option<Sent> {
        let exchange = self.exchange.as_mut()?;
        engine.wait_for_room(exchange, &mut self.stall)
    }

    /// Whether the client has to catch up.
    pub fn is_stalled(&self) -> bool {
        self.stall.is_some()
    }
}
