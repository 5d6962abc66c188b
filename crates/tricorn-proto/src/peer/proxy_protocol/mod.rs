//! What a balancer says of a connection before its first byte: HAProxy's PROXY protocol, versions 1 and 2.
//!
//! ```text
//!   the first bytes ── "PROXY " ──────────▶ version 1: a line of text
//!                   ── the signature ─────▶ version 2: a binary header with typed values
//!                   ── anything else ─────▶ absent: they are those of the request
//! ```
//!
//! It is decided by the first byte that differs. The specification is proxy-protocol.txt of HAProxy; its sections are named below.
mod announced;
mod binary;
mod crc32c;
mod line;
mod values;

pub use announced::{Announced, Ends, Opening};
pub use values::{Certificate, TlsFacts, Values};

use crate::message::Refusal;

/// Which versions are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accepts {
    V1,
    V2,
    Both,
}

/// Looks at the first bytes of a connection.
pub fn open(bytes: &[u8], accepts: Accepts) -> Result<Opening, Box<Refusal>> {
    let (line, binary) = (accepts != Accepts::V2, accepts != Accepts::V1);
    match (begins(bytes, line::MAGIC), begins(bytes, binary::SIGNATURE)) {
        (Begins::Whole, _) if line => line::read(bytes),
        (_, Begins::Whole) if binary => binary::read(bytes),
        (Begins::Part, _) if line => Ok(Opening::NeedMore),
        (_, Begins::Part) if binary => Ok(Opening::NeedMore),
        _ => Ok(Opening::Absent),
    }
}

#[derive(PartialEq)]
enum Begins {
    Whole,
    /// As far as they go.
    Part,
    Otherwise,
}

fn begins(bytes: &[u8], with: &[u8]) -> Begins {
    if bytes.starts_with(with) {
        Begins::Whole
    } else if with.starts_with(bytes) {
        Begins::Part
    } else {
        Begins::Otherwise
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_decided_by_the_first_byte_that_differs() {
        let of = |bytes: &[u8], accepts| open(bytes, accepts).expect("no fault");
        for accepts in [Accepts::V1, Accepts::V2, Accepts::Both] {
            assert_eq!(of(b"", accepts), Opening::NeedMore);
            assert_eq!(of(b"GET / HTTP/1.1\r\n", accepts), Opening::Absent);
            assert_eq!(of(b"\r\nGET / HTTP/1.1\r\n", accepts), Opening::Absent);
            assert_eq!(of(b"POST", accepts), Opening::Absent);
        }
        assert_eq!(of(b"P", Accepts::Both), Opening::NeedMore);
        assert_eq!(of(b"PR", Accepts::V1), Opening::NeedMore);
        assert_eq!(of(b"P", Accepts::V2), Opening::Absent);
        assert_eq!(of(b"PRI * HTTP/2.0", Accepts::Both), Opening::Absent);
        assert_eq!(of(b"\r\n\r\n", Accepts::Both), Opening::NeedMore);
        assert_eq!(of(b"\r\n\r\n", Accepts::V1), Opening::Absent);
    }
}
