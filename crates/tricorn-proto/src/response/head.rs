//! The head of a response as it was decided, for an encoder to say.
use super::framing::Framing;
use crate::message::{FieldList, Version};

/// All that a head says. Nothing is left to decide: an encoder says each thing as its version of HTTP does, or not at all
/// where that has no place for it.
#[derive(Debug, Clone, Copy)]
pub struct ResponseHead<'a> {
    /// The version of the request.
    pub version: Version,
    pub status: u16,
    /// The reason phrase. HTTP/2 has none.
    pub reason: &'a [u8],
    /// Value of the Server field; empty: none is sent.
    pub server: &'a [u8],
    /// Value of the Date field; empty: none is sent.
    pub date: &'a [u8],
    /// Value of the X-Request-ID field; empty: none is sent.
    pub request_id: &'a [u8],
    /// Fields of every response; the application's own of the same name stand for them.
    pub standing: &'a FieldList,
    /// A Content-Length that is not among the fields.
    pub length: Option<u64>,
    pub framing: Framing,
    pub connection: Connection,
    /// The application's fields, but for those that are the connection's.
    pub list: &'a FieldList,
    /// The one of the list that is not sent.
    pub without: Option<usize>,
}

/// What the head says of its connection. Only HTTP/1 has fields for that (RFC 9113 section 8.2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connection {
    /// Another request may follow.
    pub reuse: bool,
    /// The fields name a protocol to switch to.
    pub upgrade: bool,
}

impl<'a> ResponseHead<'a> {
    /// Name and value of each field of the list that is sent.
    #[inline]
    pub fn fields(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        let without = self.without.unwrap_or(usize::MAX);
        self.list.iter().enumerate().filter(move |(index, _)| *index != without).map(|(_, field)| field)
    }

    /// Name and value of each standing field that is sent.
    pub fn standing(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        let list = self.list;
        self.standing.iter().filter(move |(name, _)| !list.iter().any(|(own, _)| own.eq_ignore_ascii_case(name)))
    }

    /// How many these are at most, and the bytes of their names and values.
    #[inline]
    pub fn size(&self) -> (usize, usize) {
        (self.list.len(), self.list.size())
    }
}

/// A head of an interim response (RFC 9110 section 15.2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interim {
    pub status: u16,
    pub fields: FieldList,
}
