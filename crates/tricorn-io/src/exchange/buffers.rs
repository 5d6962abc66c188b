//! A request with all that belongs to it, kept in a pool: nothing is allocated for a request like the one before.
use super::body::Body;
use super::counted::Counted;
use super::times::Times;
use crate::clock;
use crate::peer::Peer;
use std::sync::Arc;
use tricorn_proto::cgi::{Scan, Vars};
use tricorn_proto::message::{Field, Known, Method, Refusal, RequestHead, Scheme};
use tricorn_proto::peer::proxy_protocol::Announced;
use tricorn_proto::peer::{Claims, ProxyPolicy, proxy, request_id, request_start};
use tricorn_proto::response::Reply;

/// Bytes an input buffer begins with; a head that fits costs one read.
pub const INPUT: usize = 16 * 1024;
/// Buffers that grew beyond this are given back to the system.
const KEEP: usize = 64 * 1024;
/// Requests kept for reuse.
pub const POOLED: usize = 64;

/// Where it came from, and whether it may go on to another worker.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Travel {
    /// How often it was handed over.
    pub(crate) hops: u8,
    /// It is of a session that this worker has: it goes to no other.
    pub(crate) is_bound: bool,
}

/// One request: its bytes, its head, its body, and room for its reply.
#[derive(Debug, Default)]
pub struct Request {
    /// What was read. The head stands at `head_at..`, bytes not yet looked at at `start..`.
    pub(crate) input: Vec<u8>,
    pub(crate) start: usize,
    pub(crate) head_at: usize,
    pub(crate) head_end: usize,
    pub head: RequestHead,
    pub body: Body,
    pub reply: Reply,
    /// Scratch for what is sent.
    pub(crate) out: Vec<u8>,
    pub(crate) times: Times,
    pub(crate) counted: Counted,
    /// Bytes that were read while it was under way.
    pub(crate) received: u64,
    pub(crate) travel: Travel,
    /// With `Config::streaming`: the rest of the body is still to come.
    pub(crate) partial: bool,
    pub(crate) told: Told,
}

/// What others than the client say of a request.
#[derive(Debug, Default)]
pub(crate) struct Told {
    /// With `HeadPolicy::proxy`: front ends, by fields of the head.
    claims: Option<Box<Claims>>,
    /// A balancer, of the connection.
    announced: Option<Arc<Announced>>,
    /// A front end, by vars: how far they are read.
    pub scan: Scan,
    /// They are complete, and so long: the input begins with them, in the form of [`Vars`].
    vars: usize,
}

impl Request {
    /// Notes since when the request waits: since the time a trusted front end gives in X-Request-Start, or else since its
    /// head was complete.
    #[inline]
    pub(crate) fn note_wait(&mut self, trusted: bool, now: u64) {
        if self.times.waits_since > 0 {
            return;
        }
        self.times.waits_since = self.times.head_complete;
        if let Some(field) = self.head.fields.iter().find(|field| field.known == Known::RequestStart)
            && trusted
            && let Some(micros) = request_start::micros_since(field.value.of(self.head_bytes()), clock::wall_micros())
        {
            self.times.waits_since = now.saturating_sub(micros.saturating_mul(1000)).max(1);
        }
    }

    /// The bytes the head's spans point into.
    #[inline]
    pub fn head_bytes(&self) -> &[u8] {
        &self.input[self.head_at..]
    }

    /// What trusted front ends say of the request; `None`: nothing is applied.
    #[inline]
    pub fn claims(&self) -> Option<&Claims> {
        self.told.claims.as_deref()
    }

    /// Applies what front ends say to the complete head, before a byte of the body is looked at. Another Host stands behind the
    /// head's own bytes. Returns how many fields were taken out.
    #[cold]
    pub(crate) fn believe(&mut self, policy: &ProxyPolicy, trusted: bool) -> Result<usize, Box<Refusal>> {
        let claims = proxy::believe(&mut self.head, &self.input[self.head_at..], policy, trusted)?;
        let removed = claims.removed.len();
        if let Some(host) = &claims.host {
            let added = [proxy::NAME, host].concat();
            proxy::set_host(&mut self.head, (self.start - self.head_at) as u32, host.len());
            let end = self.start;
            self.start += added.len();
            self.head_end = self.start;
            self.input.extend_from_slice(&added);
            self.input[end..].rotate_right(added.len());
        }
        self.told.claims = Some(Box::new(claims));
        Ok(removed)
    }

    /// The address of its client, by what a trusted front end says of it. `peer`: who has connected.
    pub(crate) fn client_address(&self, peer: Peer) -> Option<String> {
        if let Some(client) = self.claims().and_then(|claims| claims.client.as_ref()) {
            return Some(client.name.clone());
        }
        let address = match (self.vars().and_then(|vars| vars.client()), peer) {
            (Some(address), _) | (None, Peer::Internet(address)) => address,
            (None, _) => return None,
        };
        Some(address.ip().to_string())
    }

    /// What its front end has said of it; `None`: it came by HTTP.
    #[inline]
    pub fn vars(&self) -> Option<Vars<'_>> {
        if self.told.vars == 0 { None } else { Vars::of(self.vars_block()) }
    }

    /// The same as bytes; empty for a request by HTTP.
    pub(crate) fn vars_block(&self) -> &[u8] {
        self.input.get(..self.told.vars).unwrap_or_default()
    }

    /// So many bytes were vars. In their place the input has `block`, the same in our own form, and behind it the head that they make, as
    /// text of HTTP/1, which is to be read next.
    #[cold]
    pub(crate) fn lay_out(&mut self, count: usize, block: &[u8]) -> Result<(), Box<Refusal>> {
        let mut head = Vec::new();
        if let Some(vars) = Vars::of(block) {
            vars.write_head(&mut head)?;
        }
        self.input.splice(..self.start + count, block.iter().copied().chain(head));
        (self.told.vars, self.start) = (block.len(), block.len());
        Ok(())
    }

    /// The head that vars have made is read: what they say besides. A trusted client may have told its scheme itself.
    #[cold]
    pub(crate) fn note_vars(&mut self) {
        let Some(vars) = self.vars() else { return };
        let (origin, is_secure) = (vars.origin, vars.is_secure());
        self.head.version = origin.version();
        self.head.keep_alive = origin.keep;
        self.head.expect_continue = false;
        if is_secure && !self.head.scheme_is_told {
            self.head.scheme = Scheme::Https;
        }
    }

    /// Passes over bytes before the request, which are none of it. Without any behind them no request has begun.
    pub(crate) fn pass_over(&mut self, count: usize) {
        self.start += count;
        if self.unread().is_empty() {
            self.input.clear();
            self.start = 0;
            self.times.first_byte = 0;
        }
    }

    /// What a balancer has announced of the connection.
    #[inline]
    pub fn announced(&self) -> Option<&Announced> {
        self.told.announced.as_deref()
    }

    /// Notes what was announced of the connection. A client that spoke TLS with the balancer has asked by https.
    #[inline]
    pub(crate) fn note_announced(&mut self, announced: Option<&Arc<Announced>>) {
        if let Some(announced) = announced {
            if announced.values.tls.is_some() {
                self.head.scheme = Scheme::Https;
            }
            self.told.announced = Some(announced.clone());
        }
    }

    /// Takes out so many bytes, which stand before the first request. Without any behind them no request has begun.
    pub(crate) fn take_opening(&mut self, length: usize) {
        self.input.drain(..length);
        if self.input.is_empty() {
            self.times.first_byte = 0;
        }
    }

    /// The bytes of the head as the client has sent them.
    pub(crate) fn head_as_it_came(&self) -> &[u8] {
        let host = self.told.claims.as_ref().and_then(|claims| claims.host.as_ref());
        let added = host.map_or(0, |host| proxy::NAME.len() + host.len());
        self.input.get(self.head_at..self.head_end - added).unwrap_or_default()
    }

    /// Fields that are no longer in the head, since front ends may not say them.
    pub(crate) fn taken_out(&self) -> &[Field] {
        self.told.claims.as_ref().map_or(&[], |claims| &claims.removed)
    }

    /// The client waits to be told that it may send the body.
    pub(crate) fn awaits_continue(&self) -> bool {
        self.head.expect_continue && self.unread().is_empty()
    }

    /// Whether the body is in a file whose descriptor was not counted yet.
    #[inline]
    pub(crate) fn takes_file(&mut self) -> bool {
        matches!(self.body, Body::Spooled(_)) && !std::mem::replace(&mut self.counted.has_file, true)
    }

    /// HEAD or not, by the first bytes of a head that is not complete or was refused: what decides whether an answer may have a body.
    pub(crate) fn probable_method(&self) -> Method {
        let line = self.unread();
        let line = line.strip_prefix(b"\r\n").unwrap_or(line);
        if line.starts_with(b"HEAD ") { Method::Head } else { Method::Get }
    }

    /// Gives the request its id: the client's, if that is a good one, or a fresh one.
    pub(crate) fn identify(&mut self, maker: &mut request_id::Maker) {
        let Request { head, input, head_at, reply, .. } = self;
        match request_id::given(head, &input[*head_at..]) {
            Some(id) => reply.set_request_id(id),
            None => reply.set_request_id(&maker.fresh()),
        }
    }

    /// Gives back the memory that was there for what might still have come.
    pub(crate) fn trim(&mut self) {
        self.input.shrink_to_fit();
    }

    /// Bytes read but not yet looked at.
    pub(crate) fn unread(&self) -> &[u8] {
        &self.input[self.start..]
    }

    /// Forgets all bytes behind the head: they were looked at, or are elsewhere.
    pub(crate) fn forget_read(&mut self) {
        self.input.truncate(self.head_end);
        self.start = self.head_end;
    }

    fn reset(&mut self) {
        self.input.clear();
        self.out.clear();
        self.start = 0;
        self.head_at = 0;
        self.head_end = 0;
        self.times = Times::default();
        self.counted = Counted::default();
        self.received = 0;
        self.travel = Travel::default();
        self.partial = false;
        self.told = Told::default();
        self.head.clear();
        self.reply.set_request_id(b"");
        self.body = Body::Empty;
    }
}

#[derive(Debug, Default)]
#[expect(
    clippy::vec_box,
    reason = "requests travel boxed: through connections, exchanges and this pool, never by value"
)]
pub struct Pool {
    free: Vec<Box<Request>>,
}

impl Pool {
    #[inline]
    pub fn take(&mut self) -> Box<Request> {
        let mut request = self.free.pop().unwrap_or_default();
        if request.input.capacity() < INPUT {
            request.input.reserve_exact(INPUT);
        }
        request
    }

    /// One whose input holds what is there, and is not read to.
    pub fn take_bare(&mut self) -> Box<Request> {
        self.free.pop().unwrap_or_default()
    }

    #[inline]
    pub fn give(&mut self, mut request: Box<Request>) {
        if self.free.len() < POOLED && request.input.capacity() <= KEEP && request.out.capacity() <= KEEP {
            request.reset();
            self.free.push(request);
        }
    }
}
