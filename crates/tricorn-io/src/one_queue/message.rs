//! What travels with a connection that is handed over: a header of fixed size, then the bytes that were read from it.
use crate::peer::Peer;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use tricorn_proto::cgi::Protocol;
use tricorn_proto::message::Version;

/// Changes whenever the layout does.
const VERSION: u8 = 4;
/// Bytes of an encoded header.
pub const HEADER: usize = 144;
/// Payloads up to this size travel in the message; larger ones in a file of memory.
pub const INLINE: usize = 32 * 1024;
/// Most bytes of a message.
pub const MESSAGE: usize = HEADER + INLINE;

/// The state of a connection with one complete request that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HandOverMessage {
    pub peer: Peer,
    /// The address of the listener it came by; `None` for unix sockets.
    pub listener: Option<SocketAddr>,
    /// How often this request was handed over before.
    pub hops: u8,
    pub age: Age,
    pub readable: bool,
    pub hangup: bool,
    /// The payload is in a file of memory, the second descriptor.
    pub apart: bool,
    /// Length of a body that is in a file, the last descriptor.
    pub spooled: Option<u64>,
    pub way: Way,
    pub first_byte: u64,
    pub head_complete: u64,
    pub complete: u64,
    pub waits_since: u64,
    pub parts: Parts,
}

/// What the first descriptor is, and how a response is said there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Way {
    /// One end of a pair: the connection stays with the worker that has read the request, and passes on the response.
    pub lent: bool,
    /// The client speaks HTTP/2: the head is fields (`http2::head_fields`), the response is to be parts (`http2::encode`).
    pub http2: bool,
    /// The client speaks TLS.
    pub secured: bool,
    /// It is a front end: the head is vars (`cgi::Vars`), and a response is said by this version.
    pub front_end: Option<Version>,
}

impl Way {
    /// What the front end speaks.
    pub fn protocol(self) -> Option<Protocol> {
        match self.front_end? {
            Version::Uwsgi => Some(Protocol::Uwsgi),
            Version::Scgi => Some(Protocol::Scgi),
            Version::FastCgi(_) => Some(Protocol::FastCgi),
            Version::Http10 | Version::Http11 | Version::Http2 => None,
        }
    }
}

/// Lengths of the payload's parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parts {
    /// Of what is lent: what is told of the connection ([`Borrowed`](crate::borrowed::Borrowed)).
    pub borrowed: u32,
    /// What a balancer has announced of the connection, as it came.
    pub announced: u16,
    pub head: u64,
    /// The body, unless it is in a file.
    pub body: u64,
    /// The bytes after the request.
    pub next: u64,
}

/// How old the connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Age {
    /// Which of its requests this is.
    pub number: u32,
    /// From when on one is its last, in ticks of the wheel, which are the same in all workers; 0: never.
    pub last_from: u32,
}

impl HandOverMessage {
    pub fn encode(&self) -> [u8; HEADER] {
        let mut out = Writer { bytes: [0; HEADER], at: 0 };
        let flags = u8::from(self.readable)
            | u8::from(self.hangup) << 1
            | u8::from(self.apart) << 2
            | u8::from(self.spooled.is_some()) << 3
            | u8::from(self.way.lent) << 4
            | u8::from(self.way.http2) << 5
            | u8::from(self.way.secured) << 6;
        out.put(&[VERSION, self.hops, flags]);
        out.put(&self.age.number.to_ne_bytes());
        out.put(&self.age.last_from.to_ne_bytes());
        out.address(match self.peer {
            Peer::Internet(address) => Some(address),
            Peer::Unix => None,
        });
        out.address(self.listener);
        let spooled = self.spooled.unwrap_or(0);
        let times = [self.first_byte, self.head_complete, self.complete, self.waits_since];
        for number in times.into_iter().chain([self.parts.head, self.parts.body, self.parts.next, spooled]) {
            out.put(&number.to_ne_bytes());
        }
        out.put(&self.parts.announced.to_ne_bytes());
        out.put(&self.parts.borrowed.to_ne_bytes());
        let (protocol, id) = match self.way.front_end {
            Some(Version::Uwsgi) => (1, 0),
            Some(Version::Scgi) => (2, 0),
            Some(Version::FastCgi(id)) => (3, id),
            _ => (0, 0),
        };
        out.put(&[protocol]);
        out.put(&id.to_ne_bytes());
        out.bytes
    }

    /// `None` for anything that `encode` of this version has not written.
    pub fn decode(bytes: &[u8]) -> Option<HandOverMessage> {
        let mut input = Reader { bytes: bytes.get(..HEADER)? };
        let [version, hops, flags] = input.take::<3>()?;
        if version != VERSION {
            return None;
        }
        let age = Age { number: u32::from_ne_bytes(input.take()?), last_from: u32::from_ne_bytes(input.take()?) };
        let peer = input.address()?.map_or(Peer::Unix, Peer::Internet);
        let listener = input.address()?;
        let mut numbers = [0; 8];
        for number in &mut numbers {
            *number = u64::from_ne_bytes(input.take()?);
        }
        let announced = u16::from_ne_bytes(input.take()?);
        let borrowed = u32::from_ne_bytes(input.take()?);
        let ([protocol], id) = (input.take()?, u16::from_ne_bytes(input.take()?));
        let front_end = match protocol {
            0 => None,
            1 => Some(Version::Uwsgi),
            2 => Some(Version::Scgi),
            3 => Some(Version::FastCgi(id)),
            _ => return None,
        };
        let [first_byte, head_complete, complete, waits_since, head, body, next, spooled] = numbers;
        Some(HandOverMessage {
            peer,
            listener,
            hops,
            age,
            readable: flags & 1 != 0,
            hangup: flags & 2 != 0,
            apart: flags & 4 != 0,
            spooled: (flags & 8 != 0).then_some(spooled),
            way: Way { lent: flags & 16 != 0, http2: flags & 32 != 0, secured: flags & 64 != 0, front_end },
            first_byte,
            head_complete,
            complete,
            waits_since,
            parts: Parts { borrowed, announced, head, body, next },
        })
    }

    /// Bytes of the payload; `None`: more than there can be.
    pub fn payload(&self) -> Option<usize> {
        let Parts { borrowed, announced, head, body, next } = self.parts;
        let sum =
            head.checked_add(body)?.checked_add(next)?.checked_add(announced.into())?.checked_add(borrowed.into())?;
        usize::try_from(sum).ok()
    }
}

struct Writer {
    bytes: [u8; HEADER],
    at: usize,
}

impl Writer {
    fn put(&mut self, part: &[u8]) {
        self.bytes[self.at..self.at + part.len()].copy_from_slice(part);
        self.at += part.len();
    }

    /// A family (0: none), 16 bytes of address, port, flow information and scope.
    fn address(&mut self, address: Option<SocketAddr>) {
        let (family, ip, port, flow, scope) = match address {
            None => (0, [0; 16], 0, 0, 0),
            Some(SocketAddr::V4(v4)) => (4, v4.ip().to_ipv6_mapped().octets(), v4.port(), 0, 0),
            Some(SocketAddr::V6(v6)) => (6, v6.ip().octets(), v6.port(), v6.flowinfo(), v6.scope_id()),
        };
        self.put(&[family]);
        self.put(&ip);
        self.put(&port.to_ne_bytes());
        self.put(&flow.to_ne_bytes());
        self.put(&scope.to_ne_bytes());
    }
}

// Four bytes, three numbers of four bytes, two addresses of 27 bytes, eight numbers, and two short ones.
const _: () = assert!(4 + 3 * 4 + 2 * 27 + 8 * 8 + 2 * 2 <= HEADER);

struct Reader<'b> {
    bytes: &'b [u8],
}

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (part, rest) = self.bytes.split_first_chunk::<N>()?;
        self.bytes = rest;
        Some(*part)
    }

    fn address(&mut self) -> Option<Option<SocketAddr>> {
        let [family] = self.take()?;
        let ip = Ipv6Addr::from(self.take::<16>()?);
        let port = u16::from_ne_bytes(self.take()?);
        let (flow, scope) = (u32::from_ne_bytes(self.take()?), u32::from_ne_bytes(self.take()?));
        match family {
            0 => Some(None),
            4 => {
                let v4: Ipv4Addr = ip.to_ipv4_mapped()?;
                Some(Some(SocketAddr::new(IpAddr::V4(v4), port)))
            }
            6 => Some(Some(SocketAddr::V6(SocketAddrV6::new(ip, port, flow, scope)))),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(peer: Peer, listener: Option<SocketAddr>, spooled: Option<u64>) -> HandOverMessage {
        HandOverMessage {
            peer,
            listener,
            hops: 3,
            age: Age { number: 8, last_from: u32::MAX },
            readable: true,
            hangup: false,
            apart: spooled.is_none(),
            spooled,
            way: Way {
                lent: spooled.is_none(),
                http2: listener.is_some(),
                secured: spooled == Some(0),
                front_end: spooled.map(|length| if length > 0 { Version::FastCgi(513) } else { Version::Scgi }),
            },
            first_byte: 1,
            head_complete: 2,
            complete: u64::MAX,
            waits_since: 4,
            parts: Parts { borrowed: 70_000, announced: 107, head: 5, body: 6, next: 7 },
        }
    }

    #[test]
    fn what_is_packed_is_unpacked() {
        let v6 = SocketAddr::V6(SocketAddrV6::new(Ipv6Addr::LOCALHOST, 80, 1, 2));
        let v4 = "192.0.2.1:65535".parse().expect("an address");
        for peer in [Peer::Unix, Peer::Internet(v4), Peer::Internet(v6)] {
            for listener in [None, Some(v4), Some(v6)] {
                for spooled in [None, Some(0), Some(1 << 40)] {
                    let message = message(peer, listener, spooled);
                    assert_eq!(HandOverMessage::decode(&message.encode()), Some(message));
                }
            }
        }
    }

    #[test]
    fn what_was_not_packed_is_not_unpacked() {
        let good = message(Peer::Unix, None, None).encode();
        assert_eq!(HandOverMessage::decode(&good[..HEADER - 1]), None);
        let mut other_version = good;
        other_version[0] = 0;
        let mut no_family = good;
        no_family[11] = 5;
        assert_eq!((HandOverMessage::decode(&other_version), HandOverMessage::decode(&no_family)), (None, None));
        let good = message(Peer::Unix, None, None);
        let parts = Parts { body: u64::MAX, ..good.parts };
        assert_eq!(HandOverMessage { parts, ..good }.payload(), None);
    }
}
