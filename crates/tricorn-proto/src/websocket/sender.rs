//! One connection's sending side: messages and control frames into bytes.
use super::close::{self, Close, Closing, Phase};
use super::deflate::{Agreed, ContextPool, Deflater};
use super::frame::{Head, Kind, MAX_CONTROL, MAX_HEAD, Opcode, Role};
use super::{Violation, mask};

/// Why nothing was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unsendable {
    /// A Close frame was sent, or one came: "the application MUST NOT send any more data frames".
    Closing,
    /// A control frame holds 125 bytes.
    ControlTooLong,
    /// Not a code that may be sent.
    CloseCode(u16),
}

impl std::fmt::Display for Unsendable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Unsendable::Closing => f.write_str("the WebSocket is closing"),
            Unsendable::ControlTooLong => f.write_str("a ping or pong holds at most 125 bytes"),
            Unsendable::CloseCode(code) => {
                write!(f, "close code {code}; expected 1000 to 1003, 1007 to 1014 or 3000 to 4999")
            }
        }
    }
}

impl std::error::Error for Unsendable {}

/// What a sender depends on.
#[derive(Debug, Clone, Copy)]
pub struct Settings<'a> {
    pub role: Role,
    /// Longest payload of a frame: longer messages are sent in fragments. 0: never.
    pub fragment: usize,
    pub deflate: Option<&'a Agreed>,
    /// As client: what the masking keys are made from. "MUST be … chosen from a strong source of entropy" if the
    /// payload comes from another peer.
    pub seed: u64,
}

#[derive(Debug)]
pub struct Sender {
    role: Role,
    fragment: usize,
    deflater: Option<Deflater>,
    keys: u64,
    closing: Closing,
}

impl Sender {
    pub fn new(settings: &Settings<'_>) -> Sender {
        Sender {
            role: settings.role,
            fragment: if settings.fragment == 0 { usize::MAX } else { settings.fragment },
            deflater: settings.deflate.map(|agreed| Deflater::new(agreed, settings.role)),
            keys: settings.seed,
            closing: Closing::default(),
        }
    }

    /// Appends a message. That `Text` is UTF-8 is up to the caller.
    #[inline]
    pub fn message(
        &mut self,
        out: &mut Vec<u8>,
        kind: Kind,
        data: &[u8],
        spare: &mut ContextPool,
    ) -> Result<(), Unsendable> {
        self.check()?;
        let Some(deflater) = &mut self.deflater else {
            self.frames(out, kind, false, data);
            return Ok(());
        };
        let mut scratch = spare.take_buffer();
        match deflater.deflate(data, &mut scratch, spare) {
            true => self.frames(out, kind, true, &scratch),
            false => self.frames(out, kind, false, data),
        }
        spare.give_buffer(scratch);
        Ok(())
    }

    /// Appends only the head of a message of `length` bytes, which the caller sends right after, as they are. `None`: this
    /// message has to go through `message` (it is masked, compressed or fragmented).
    #[inline]
    pub fn head(&mut self, out: &mut Vec<u8>, kind: Kind, length: usize) -> Result<Option<()>, Unsendable> {
        self.check()?;
        let is_compressed = self.deflater.as_ref().is_some_and(|deflater| deflater.wants(length));
        if self.role == Role::Client || is_compressed || length > self.fragment {
            return Ok(None);
        }
        let head = Head { fin: true, compressed: false, opcode: kind.into(), key: None, length: length as u64 };
        head.write(out);
        Ok(Some(()))
    }

    pub fn ping(&mut self, out: &mut Vec<u8>, payload: &[u8]) -> Result<(), Unsendable> {
        self.control(out, Opcode::Ping, payload)
    }

    /// The answer to a Ping has its payload.
    pub fn pong(&mut self, out: &mut Vec<u8>, payload: &[u8]) -> Result<(), Unsendable> {
        self.control(out, Opcode::Pong, payload)
    }

    /// Begins the closing handshake, or answers: appends a Close frame, once. Without a code there is no reason either;
    /// one that is too long is cut.
    pub fn close(&mut self, out: &mut Vec<u8>, code: Option<u16>, reason: &str) -> Result<(), Unsendable> {
        if let Some(code) = code
            && !close::may_be_sent(code)
        {
            return Err(Unsendable::CloseCode(code));
        }
        if !self.closing.send(code) {
            return Err(Unsendable::Closing);
        }
        self.frame(out, control(Opcode::Close), &Close { code, reason }.payload());
        Ok(())
    }

    /// The peer's Close frame came: appends the answer ("typically echos the status code it received"), unless it was one.
    /// As server the connection is then to be closed.
    pub fn answer(&mut self, out: &mut Vec<u8>, close: &Close<'_>) {
        self.closing.receive(close);
        if self.closing.phase() == Phase::Received {
            // Whatever came is a code that may be sent.
            let _ = self.close(out, close.code, "");
        }
    }

    /// The peer broke the protocol: appends a Close frame that says so, unless one was sent. The connection is then to be
    /// closed without waiting for an answer.
    pub fn fail(&mut self, out: &mut Vec<u8>, violation: Violation) {
        self.give_up(out, violation.code(), violation.reason());
    }

    /// The peer is not waited for any more: appends a Close frame, unless one was sent.
    pub fn give_up(&mut self, out: &mut Vec<u8>, code: u16, reason: &str) {
        let _ = self.close(out, Some(code), reason);
        self.closing.lose();
    }

    /// The connection is gone.
    pub fn lost(&mut self) {
        self.closing.lose();
    }

    pub fn closing(&self) -> &Closing {
        &self.closing
    }

    /// Gives up what only the next message would need.
    pub fn rest(&mut self, spare: &mut ContextPool) {
        if let Some(deflater) = &mut self.deflater {
            deflater.rest(spare);
        }
    }

    /// Nothing more is sent: gives up what was held for it.
    pub fn end(&mut self) {
        self.deflater = None;
    }

    #[inline]
    fn check(&self) -> Result<(), Unsendable> {
        if self.closing.may_send() { Ok(()) } else { Err(Unsendable::Closing) }
    }

    fn control(&mut self, out: &mut Vec<u8>, opcode: Opcode, payload: &[u8]) -> Result<(), Unsendable> {
        self.check()?;
        if payload.len() > MAX_CONTROL {
            return Err(Unsendable::ControlTooLong);
        }
        self.frame(out, control(opcode), payload);
        Ok(())
    }

    fn frames(&mut self, out: &mut Vec<u8>, kind: Kind, compressed: bool, data: &[u8]) {
        let mut head = Head { fin: false, compressed, opcode: kind.into(), key: None, length: 0 };
        let mut rest = data;
        while rest.len() > self.fragment {
            let (piece, after) = rest.split_at(self.fragment);
            self.frame(out, head, piece);
            (head.opcode, head.compressed, rest) = (Opcode::Continuation, false, after);
        }
        self.frame(out, Head { fin: true, ..head }, rest);
    }

    #[inline]
    fn frame(&mut self, out: &mut Vec<u8>, head: Head, payload: &[u8]) {
        let key = match self.role {
            Role::Server => None,
            Role::Client => Some(self.next_key()),
        };
        out.reserve(MAX_HEAD + payload.len());
        Head { key, length: payload.len() as u64, ..head }.write(out);
        let start = out.len();
        out.extend_from_slice(payload);
        if let Some(key) = key {
            mask::apply(&mut out[start..], key, 0);
        }
    }

    /// SplitMix64.
    fn next_key(&mut self) -> [u8; 4] {
        self.keys = self.keys.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.keys;
        bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ bits >> 31) as u32).to_ne_bytes()
    }
}

fn control(opcode: Opcode) -> Head {
    Head { fin: true, compressed: false, opcode, key: None, length: 0 }
}
