//! A response as bytes in order, before it is cut into frames: its parts.
//!
//! ```text
//!   response = *( INTERIM ) HEAD *( DATA ) END
//!   part     = kind (1 byte), length of what follows (8 bytes), head / content / trailers
//! ```
//!
//! What waits for a client is bytes of HTTP/1 for a connection of HTTP/1, and parts for a stream of HTTP/2: one queue holds
//! either. Frames cannot wait, since header blocks depend on their order and DATA on the windows. `parts` reads them.
use crate::message::FieldList;
use crate::response::{Framing, Interim, Portion, ResponseHead};

pub(super) const HEAD: u8 = b'H';
pub(super) const INTERIM: u8 = b'I';
pub(super) const DATA: u8 = b'D';
pub(super) const END: u8 = b'E';
/// Kind and length.
pub(super) const MARK: usize = 9;
/// The end of a response without trailers.
pub(super) const BARE_END: [u8; MARK] = [END, 0, 0, 0, 0, 0, 0, 0, 0];

/// The interim response to a client that waits with its body.
pub const CONTINUE: &[u8] = &[INTERIM, 3, 0, 0, 0, 0, 0, 0, 0, 100, 0, 0];

/// Appends the head: each thing that it says, but for the connection, which has no fields here (RFC 9113 section 8.2.2).
pub fn head(out: &mut Vec<u8>, head: &ResponseHead<'_>) {
    let end = matches!(head.framing, Framing::None | Framing::Length(0));
    let (_, size) = head.size();
    out.reserve(HEAD_ROOM + size);
    part(out, HEAD, |out| {
        out.extend_from_slice(&head.status.to_le_bytes());
        out.push(u8::from(end));
        let own: [(&[u8], &[u8]); 3] =
            [(b"server", head.server), (b"date", head.date), (b"x-request-id", head.request_id)];
        for (name, value) in own.into_iter().filter(|(_, value)| !value.is_empty()) {
            field(out, name, value);
        }
        if let Some(length) = head.length {
            field(out, b"content-length", itoa::Buffer::new().format(length).as_bytes());
        }
        for (name, value) in head.standing().chain(head.fields()) {
            if !name.eq_ignore_ascii_case(b"upgrade") {
                field(out, name, value);
            }
        }
    });
}

/// Appends an interim response.
pub fn interim(out: &mut Vec<u8>, interim: &Interim) {
    part(out, INTERIM, |out| {
        out.extend_from_slice(&interim.status.to_le_bytes());
        out.push(0);
        interim.fields.iter().for_each(|(name, value)| field(out, name, value));
    });
}

/// Appends what precedes a piece of the body. Nothing follows one.
#[inline]
pub fn before(out: &mut Vec<u8>, portion: Portion) {
    if portion.length > 0 {
        out.push(DATA);
        out.extend_from_slice(&portion.length.to_le_bytes());
    }
}

/// Appends the end of a response, with its trailers.
#[inline]
pub fn end(out: &mut Vec<u8>, trailers: Option<&FieldList>) {
    match trailers {
        Some(trailers) if !trailers.is_empty() => {
            part(out, END, |out| trailers.iter().for_each(|(name, value)| field(out, name, value)));
        }
        _ => out.extend_from_slice(&BARE_END),
    }
}

fn part(out: &mut Vec<u8>, kind: u8, write: impl FnOnce(&mut Vec<u8>)) {
    out.push(kind);
    let at = out.len();
    out.extend_from_slice(&[0; 8]);
    write(out);
    let length = (out.len() - at - 8) as u64;
    out[at..at + 8].copy_from_slice(&length.to_le_bytes());
}

pub(super) fn field(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    out.extend_from_slice(&(name.len() as u32).to_le_bytes());
    out.extend_from_slice(&(value.len() as u32).to_le_bytes());
    out.extend_from_slice(name);
    out.extend_from_slice(value);
}

/// Room for all that a head says besides its fields.
const HEAD_ROOM: usize = 256;

/// Status, whether there is no content, and fields of a head that was written here.
pub(super) fn read_head(payload: &[u8]) -> Option<(u16, bool, Fields<'_>)> {
    let (&[low, high, end], fields) = payload.split_first_chunk()?;
    Some((u16::from_le_bytes([low, high]), end != 0, Fields::of(fields)))
}

/// Names and values, as `encode` has written them.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    pub fn of(payload: &'a [u8]) -> Fields<'a> {
        Fields(payload)
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<(&'a [u8], &'a [u8])> {
        let (name, rest) = self.0.split_first_chunk()?;
        let (value, rest) = rest.split_first_chunk()?;
        let (name, rest) = rest.split_at_checked(u32::from_le_bytes(*name) as usize)?;
        let (value, rest) = rest.split_at_checked(u32::from_le_bytes(*value) as usize)?;
        self.0 = rest;
        Some((name, value))
    }
}
