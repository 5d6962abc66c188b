//! The nine bytes before each payload (RFC 9113 section 4.1).
use crate::http2::violation::Violation;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameHeader {
    /// Of the payload.
    pub length: usize,
    pub kind: Kind,
    pub flags: u8,
    /// 0: the connection.
    pub stream: u32,
}

/// The type of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Data,
    Headers,
    Priority,
    RstStream,
    Settings,
    PushPromise,
    Ping,
    Goaway,
    WindowUpdate,
    Continuation,
    PriorityUpdate,
    /// Section 4.1: "Implementations MUST ignore and discard frames of unknown types."
    Unknown,
}

/// Numbers of the types that have names.
const KINDS: [(u8, Kind); 11] = [
    (0x0, Kind::Data),
    (0x1, Kind::Headers),
    (0x2, Kind::Priority),
    (0x3, Kind::RstStream),
    (0x4, Kind::Settings),
    (0x5, Kind::PushPromise),
    (0x6, Kind::Ping),
    (0x7, Kind::Goaway),
    (0x8, Kind::WindowUpdate),
    (0x9, Kind::Continuation),
    (0x10, Kind::PriorityUpdate),
];

impl FrameHeader {
    pub fn parse(bytes: &[u8; HEADER_BYTES]) -> FrameHeader {
        let [high, middle, low, kind, flags, stream @ ..] = *bytes;
        FrameHeader {
            length: u32::from_be_bytes([0, high, middle, low]) as usize,
            kind: KINDS.iter().find(|(number, _)| *number == kind).map_or(Kind::Unknown, |(_, kind)| *kind),
            flags,
            // The reserved bit "MUST be ignored when receiving".
            stream: u32::from_be_bytes(stream) & MAX_STREAM,
        }
    }

    pub fn write(&self, out: &mut Vec<u8>) {
        let [_, length @ ..] = (self.length as u32).to_be_bytes();
        let number = KINDS.iter().find(|(_, kind)| *kind == self.kind).map_or(u8::MAX, |(number, _)| *number);
        out.extend_from_slice(&length);
        out.extend_from_slice(&[number, self.flags]);
        out.extend_from_slice(&self.stream.to_be_bytes());
    }

    /// Checks what can be known before the payload comes.
    pub fn check(&self) -> Result<(), Violation> {
        use Kind::*;
        if self.length > MAX_PAYLOAD {
            return Err(Violation::FrameTooLarge);
        }
        match (self.kind, self.stream) {
            (Data | Headers | Priority | RstStream | Continuation, 0) => Err(Violation::StreamZero),
            (Settings | Ping | Goaway | PriorityUpdate, 1..) => Err(Violation::NotStreamZero),
            (PushPromise, _) => Err(Violation::PushPromise),
            _ => match (self.kind, self.length) {
                (RstStream | WindowUpdate, 4) | (Ping, 8) => Ok(()),
                (RstStream | WindowUpdate | Ping, _) => Err(Violation::FrameLength),
                (Goaway, ..8) | (PriorityUpdate, ..4) => Err(Violation::FrameLength),
                (Priority, 5) => Ok(()),
                (Priority, _) => Err(Violation::PriorityLength),
                _ => Ok(()),
            },
        }
    }

    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

pub const HEADER_BYTES: usize = 9;
/// SETTINGS_MAX_FRAME_SIZE of both sides: the smallest that RFC 9113 section 6.5.2 allows.
pub const MAX_PAYLOAD: usize = 16_384;
const MAX_STREAM: u32 = u32::MAX >> 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_survive_the_wire() {
        for (_, kind) in KINDS {
            let header = FrameHeader { length: 0x01_02_03, kind, flags: 0x25, stream: MAX_STREAM };
            let mut out = Vec::new();
            header.write(&mut out);
            assert_eq!(FrameHeader::parse(out.first_chunk().unwrap()), header);
        }
    }

    #[test]
    fn the_reserved_bit_is_ignored() {
        assert_eq!(FrameHeader::parse(&[0, 0, 0, 0, 0, 0x80, 0, 0, 1]).stream, 1);
    }
}
