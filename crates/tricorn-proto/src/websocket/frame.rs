//! Frame heads (RFC 6455 section 5.2).
//!
//! ```text
//!   FIN RSV1 RSV2 RSV3 opcode(4) | MASK length(7) | length(16 or 64)? | key(32)? | payload
//! ```
//!
//! What can be seen to be wrong is refused at the first byte that shows it.
use super::Violation;

/// Which side we are; the peer is the other one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Role {
    #[default]
    Server,
    Client,
}

/// What a message is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// UTF-8.
    Text,
    Binary,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opcode {
    Continuation,
    Text,
    Binary,
    Close,
    Ping,
    Pong,
}

/// Who may set RSV1: an extension that was agreed upon.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Rsv1 {
    #[default]
    Reserved,
    /// permessage-deflate.
    Compressed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// The last (or only) frame of its message.
    pub fin: bool,
    /// RSV1: the message is compressed. On its first frame only.
    pub compressed: bool,
    pub opcode: Opcode,
    pub key: Option<[u8; 4]>,
    /// Of the payload, in bytes.
    pub length: u64,
}

impl Head {
    /// Reads the head at the start of `input`, sent to `role`; with its length. `None`: more bytes must come.
    #[inline]
    pub fn read(input: &[u8], role: Role, rsv1: Rsv1) -> Result<Option<(Head, usize)>, Violation> {
        let [first, rest @ ..] = input else { return Ok(None) };
        let (fin, compressed) = (first & FIN != 0, first & RSV1 != 0);
        if first & (RSV2 | RSV3) != 0 || (compressed && rsv1 == Rsv1::Reserved) {
            return Err(Violation::ReservedBits);
        }
        let opcode = Opcode::read(first & OPCODE).ok_or(Violation::UnknownOpcode)?;
        if opcode.is_control() && !fin {
            return Err(Violation::FragmentedControl);
        }
        match opcode {
            Opcode::Text | Opcode::Binary => {}
            // RFC 7692 section 6: "An endpoint MUST NOT set the "Per-Message Compressed" bit of control frames and
            // non-first fragments of a data message."
            Opcode::Continuation if compressed => return Err(Violation::CompressedContinuation),
            _ if compressed => return Err(Violation::CompressedControl),
            _ => {}
        }
        let [second, rest @ ..] = rest else { return Ok(None) };
        let short = second & LENGTH;
        let masked = second & MASK != 0;
        match (role, masked) {
            (Role::Server, false) => return Err(Violation::NotMasked),
            (Role::Client, true) => return Err(Violation::Masked),
            _ => {}
        }
        if opcode.is_control() && u64::from(short) > MAX_CONTROL as u64 {
            return Err(Violation::LongControl);
        }
        let Some((length, rest)) = read_length(short, rest)? else { return Ok(None) };
        let (key, rest) = match rest.split_first_chunk::<4>() {
            _ if !masked => (None, rest),
            Some((key, rest)) => (Some(*key), rest),
            None => return Ok(None),
        };
        Ok(Some((Head { fin, compressed, opcode, key, length }, input.len() - rest.len())))
    }

    /// Appends the head.
    #[inline]
    pub fn write(&self, out: &mut Vec<u8>) {
        let bit = |set: bool, bit: u8| if set { bit } else { 0 };
        let mask = bit(self.key.is_some(), MASK);
        out.push(bit(self.fin, FIN) | bit(self.compressed, RSV1) | self.opcode.bits());
        match self.length {
            0..=125 => out.push(mask | self.length as u8),
            126..=0xffff => {
                out.push(mask | LENGTH_16);
                out.extend_from_slice(&(self.length as u16).to_be_bytes());
            }
            _ => {
                out.push(mask | LENGTH_64);
                out.extend_from_slice(&self.length.to_be_bytes());
            }
        }
        if let Some(key) = self.key {
            out.extend_from_slice(&key);
        }
    }
}

/// "in all cases, the minimal number of bytes MUST be used to encode the length"; "the most significant bit MUST be 0".
#[inline]
fn read_length(short: u8, rest: &[u8]) -> Result<Option<(u64, &[u8])>, Violation> {
    match short {
        LENGTH_16 => {
            let Some((length, rest)) = rest.split_first_chunk::<2>() else { return Ok(None) };
            let length = u64::from(u16::from_be_bytes(*length));
            if length < u64::from(LENGTH_16) {
                return Err(Violation::LengthNotMinimal);
            }
            Ok(Some((length, rest)))
        }
        LENGTH_64 => {
            if rest.first().is_some_and(|&first| first & 0x80 != 0) {
                return Err(Violation::LengthTooLarge);
            }
            let Some((length, rest)) = rest.split_first_chunk::<8>() else { return Ok(None) };
            let length = u64::from_be_bytes(*length);
            if length <= u64::from(u16::MAX) {
                return Err(Violation::LengthNotMinimal);
            }
            Ok(Some((length, rest)))
        }
        short => Ok(Some((u64::from(short), rest))),
    }
}

impl Opcode {
    #[inline]
    fn read(bits: u8) -> Option<Opcode> {
        Some(match bits {
            0x0 => Opcode::Continuation,
            0x1 => Opcode::Text,
            0x2 => Opcode::Binary,
            0x8 => Opcode::Close,
            0x9 => Opcode::Ping,
            0xa => Opcode::Pong,
            _ => return None,
        })
    }

    #[inline]
    fn bits(self) -> u8 {
        match self {
            Opcode::Continuation => 0x0,
            Opcode::Text => 0x1,
            Opcode::Binary => 0x2,
            Opcode::Close => 0x8,
            Opcode::Ping => 0x9,
            Opcode::Pong => 0xa,
        }
    }

    #[inline]
    pub fn is_control(self) -> bool {
        matches!(self, Opcode::Close | Opcode::Ping | Opcode::Pong)
    }
}

impl From<Kind> for Opcode {
    #[inline]
    fn from(kind: Kind) -> Opcode {
        match kind {
            Kind::Text => Opcode::Text,
            Kind::Binary => Opcode::Binary,
        }
    }
}

/// Longest payload of a control frame.
pub const MAX_CONTROL: usize = 125;
/// Longest head: two bytes, 64 bits of length, key.
pub const MAX_HEAD: usize = 14;
const FIN: u8 = 0x80;
const RSV1: u8 = 0x40;
const RSV2: u8 = 0x20;
const RSV3: u8 = 0x10;
const OPCODE: u8 = 0x0f;
const MASK: u8 = 0x80;
const LENGTH: u8 = 0x7f;
const LENGTH_16: u8 = 126;
const LENGTH_64: u8 = 127;
