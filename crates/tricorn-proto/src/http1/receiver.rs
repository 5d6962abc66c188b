//! One connection's receiving side: heads and bodies out of bytes, however they were split.
use super::chunked::Decoder;
use super::fields::{self, Source};
use super::lines::{Check, Scan};
use super::state::{self, Event, State};
use super::step::{Progress, Step};
use super::{HeadPolicy, fold};
use crate::cgi::fastcgi::{Content, Stdin};
use crate::message::{Framing, Refusal, RefusalKind, RequestHead};

/// The receiving state machine; small, one per connection.
#[derive(Debug, Default)]
pub struct Receiver {
    state: State,
    /// The one CRLF that may stand before a request line was taken.
    empty_line: bool,
    /// How far an incomplete head was looked at.
    scan: Scan,
    /// Of a body of known length.
    remaining: u64,
    coding: Coding,
}

/// How a body is read that is not simply so long.
#[derive(Debug)]
enum Coding {
    Chunked(Decoder),
    /// In records of FastCGI.
    Records(Stdin),
}

impl Default for Coding {
    fn default() -> Coding {
        Coding::Chunked(Decoder::default())
    }
}

impl Receiver {
    /// Looks at `input` (all unconsumed bytes) and takes one step.
    ///
    /// After a refusal nothing more is read: the connection is to be closed.
    #[inline]
    pub fn advance(
        &mut self,
        input: &mut [u8],
        policy: &HeadPolicy,
        trusted: bool,
        head: &mut RequestHead,
    ) -> Result<Progress, Box<Refusal>> {
        let progress = match self.state {
            State::Idle | State::Head => self.head(input, policy, trusted, head),
            State::Fixed => Ok(self.fixed(input.len())),
            State::Chunked | State::Records => self.coded(input, policy, head),
            State::End => Ok(Progress { consumed: 0, step: Step::End }),
            State::Refused => Err(after_refusal()),
        };
        match &progress {
            Ok(Progress { step: Step::End, .. }) if matches!(self.state, State::Chunked | State::Records) => {
                self.enter(Event::EndOfBody);
            }
            Ok(_) => {}
            Err(_) => self.enter(Event::Refuse),
        }
        progress
    }

    /// For a body of known length: how many bytes of it are still to come, so that the caller can read them straight
    /// to where they are wanted. `None` outside such a body.
    pub fn fixed_remaining(&self) -> Option<u64> {
        (self.state == State::Fixed).then_some(self.remaining)
    }

    /// Tells that `n` bytes of a fixed-length body were taken without `advance`.
    pub fn took_fixed(&mut self, n: u64) {
        match self.remaining.checked_sub(n) {
            Some(remaining) if self.state == State::Fixed => {
                self.remaining = remaining;
                if remaining == 0 {
                    self.enter(Event::EndOfBody);
                }
            }
            _ if n == 0 => {}
            // The caller took bytes that were not the body's.
            _ => self.enter(Event::Refuse),
        }
    }

    /// Tells that the body, trailers included, was read before by other code, which also looked at it.
    pub fn took_body(&mut self) {
        self.remaining = 0;
        if matches!(self.state, State::Fixed | State::Chunked | State::Records) {
            self.enter(Event::EndOfBody);
        }
    }

    /// The head came as vars, and what follows it comes in records of FastCGI, its end included, be there a body or not.
    pub fn follow_records(&mut self, id: u16) {
        self.coding = Coding::Records(Stdin::new(id));
        self.enter(Event::Records);
    }

    /// All of the content has come, and what tells its end has not: an empty record of FastCGI, which between requests is passed over.
    pub fn lacks_only_its_end(&self) -> bool {
        match &self.coding {
            Coding::Records(stdin) => self.state == State::Records && self.remaining == 0 && stdin.is_between_records(),
            Coding::Chunked(_) => false,
        }
    }

    /// What is answered at once to something else that stands between these records.
    #[inline]
    pub fn take_answer(&mut self) -> Option<Vec<u8>> {
        match &mut self.coding {
            Coding::Chunked(_) => None,
            Coding::Records(stdin) => stdin.take_answer(),
        }
    }

    /// Whether all of the request was read.
    #[inline]
    pub fn is_at_end(&self) -> bool {
        self.state == State::End
    }

    /// Whether nothing of a request has been seen yet (between requests).
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.state == State::Idle
    }

    /// The reply to the current request is done; the next head may be read. Before `Step::End` nothing tells where
    /// that would begin: the receiver then refuses whatever comes.
    #[inline]
    pub fn next_request(&mut self) {
        self.enter(Event::NextRequest);
        self.empty_line = false;
    }

    #[inline]
    fn enter(&mut self, event: Event) {
        self.state = state::next(self.state, event);
    }

    #[inline]
    fn head(
        &mut self,
        input: &mut [u8],
        policy: &HeadPolicy,
        trusted: bool,
        head: &mut RequestHead,
    ) -> Result<Progress, Box<Refusal>> {
        // RFC 9112 section 2.2: "a server that is expecting to receive and parse a request-line SHOULD ignore at least
        // one empty line (CRLF) received prior to the request-line." One, and no more.
        let empty_line = !self.empty_line && input.starts_with(b"\r\n");
        let start = if empty_line { 2 } else { 0 };
        if self.scan.has_begun() || policy.leniency.rewrites() || input.len() <= start {
            return self.head_in_pieces(input, policy, trusted, head);
        }
        let bounds = policy.limits.bounds();
        match fields::read(&Source { input, start, policy, bounds, trusted }, head)? {
            Some(end) => self.complete(input, end, policy, head),
            None => self.head_in_pieces(input, policy, trusted, head),
        }
    }

    /// The head did not come at once, or something is wrong with it, or it is to be rewritten before it is read.
    #[cold]
    fn head_in_pieces(
        &mut self,
        input: &mut [u8],
        policy: &HeadPolicy,
        trusted: bool,
        head: &mut RequestHead,
    ) -> Result<Progress, Box<Refusal>> {
        let wait = |consumed| Ok(Progress { consumed, step: Step::NeedMore });
        if !self.scan.has_begun() {
            // Should this head be refused, nothing of the request before it may be logged in its place.
            head.clear();
            match input {
                [] => return wait(0),
                [b'\r'] if !self.empty_line => return wait(0),
                [b'\r', b'\n', ..] if !self.empty_line => {
                    self.empty_line = true;
                    if input.len() == 2 {
                        return wait(2);
                    }
                    self.scan = Scan::from(2);
                }
                _ => {}
            }
        }
        self.enter(Event::Bytes);
        let (bounds, leniency) = (policy.limits.bounds(), &policy.leniency);
        let check = if leniency.rewrites() { Check::Limits } else { Check::All };
        let start = self.scan.start();
        let Some(end) = self.scan.advance(input, &bounds, leniency, check)? else {
            return wait(0);
        };
        if leniency.rewrites() {
            fold::normalise(&mut input[start..end], leniency);
        }
        let source = Source { input: &input[..end], start, policy, bounds, trusted };
        match fields::read(&source, head)? {
            Some(end) => self.complete(input, end, policy, head),
            None => Err(what_is_wrong(&source)),
        }
    }

    #[inline]
    fn complete(
        &mut self,
        input: &mut [u8],
        end: usize,
        policy: &HeadPolicy,
        head: &RequestHead,
    ) -> Result<Progress, Box<Refusal>> {
        if policy.leniency.casefold_method {
            input[head.method.start as usize..head.method.end as usize].make_ascii_uppercase();
        }
        match head.framing {
            Framing::Length(length) => {
                policy.limits.check_body(length)?;
                self.remaining = length;
            }
            Framing::Chunked => self.coding = Coding::default(),
            Framing::None => {}
        }
        self.scan = Scan::default();
        self.enter(Event::Head(head.framing));
        Ok(Progress { consumed: end, step: Step::Head })
    }

    #[inline]
    fn coded(&mut self, input: &[u8], policy: &HeadPolicy, head: &mut RequestHead) -> Result<Progress, Box<Refusal>> {
        let (consumed, step) = match &mut self.coding {
            Coding::Chunked(decoder) => return decoder.advance(input, policy, &mut head.trailers),
            Coding::Records(stdin) => match stdin.advance(input, &mut self.remaining)? {
                Content::NeedMore(consumed) => (consumed, Step::NeedMore),
                Content::Bytes(range) => (range.end, Step::Body(range)),
                Content::End(consumed) => (consumed, Step::End),
            },
        };
        Ok(Progress { consumed, step })
    }

    fn fixed(&mut self, available: usize) -> Progress {
        if available == 0 {
            return Progress { consumed: 0, step: Step::NeedMore };
        }
        let length = self.remaining.min(available as u64);
        self.took_fixed(length);
        let end = length as usize;
        Progress { consumed: end, step: Step::Body(0..end) }
    }
}

/// A complete head that passed the limits but not the grammar, after it was rewritten.
#[cold]
fn what_is_wrong(source: &Source<'_>) -> Box<Refusal> {
    let mut scan = Scan::from(if source.start == 0 { 0 } else { 2 });
    let leniency = &source.policy.leniency;
    match scan.advance(source.input, &source.bounds, leniency, Check::All) {
        Err(refusal) => refusal,
        // `fields` and `lines` disagree, which is our bug; the fuzz target `head` looks for it.
        Ok(_) => Box::new(Refusal::new(RefusalKind::InternalError, UNEXPLAINED)),
    }
}

#[cold]
fn after_refusal() -> Box<Refusal> {
    Refusal::from_bytes(RefusalKind::RequestLine, b"after a request that was refused or not read")
}

/// Tests look for this text.
const UNEXPLAINED: &str = "A head was refused without a reason";
