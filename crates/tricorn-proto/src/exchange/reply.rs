//! The reply machine: Open → HeadSent → Done. It decides framing, keeps lengths honest and encodes.
use crate::http1::{Method, Version};

/// What the application did wrong, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    Status(String),
    FieldName(String),
    FieldValue(String),
}

/// What the head of a reply depends on besides the application's fields.
#[derive(Debug, Clone, Copy)]
pub struct HeadInputs<'a> {
    /// IMF-fixdate, 29 bytes.
    pub date: &'a [u8],
    /// Value of the Server field; empty: none is sent.
    pub server: &'a [u8],
    /// Length of the whole body where the gateway knows it (all of it is at hand); becomes Content-Length if the application gave none.
    pub body_length: Option<u64>,
    /// The server wants the connection closed after this reply.
    pub close: bool,
}

/// How a reply ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// All was sent as promised; the connection may be used again.
    Reuse,
    /// The connection must be closed after what was sent.
    Close,
    /// The body was shorter than its Content-Length: close so that the client can tell.
    Short { missing: u64 },
}

/// Reused from reply to reply.
#[derive(Debug, Default)]
pub struct Reply {}

impl Reply {
    /// Begins a reply to a request with this method and version whose client allows keep-alive or not.
    pub fn begin(&mut self, _method: Method, _version: Version, _keep_alive: bool) {
        todo!()
    }
    /// `200 OK`: three digits and a phrase (PEP 3333). Forgets fields set before.
    pub fn status(&mut self, _line: &[u8]) -> Result<(), Fault> {
        todo!()
    }
    /// One field of the application, checked (token, no control characters) and encoded. Hop-by-hop ones are dropped.
    pub fn field(&mut self, _name: &[u8], _value: &[u8]) -> Result<(), Fault> {
        todo!()
    }
    pub fn has_status(&self) -> bool {
        todo!()
    }
    pub fn head_sent(&self) -> bool {
        todo!()
    }
    pub fn status_code(&self) -> u16 {
        todo!()
    }
    /// The Content-Length the application set, if it did.
    pub fn content_length(&self) -> Option<u64> {
        todo!()
    }
    /// The application's fields as encoded, for the access log.
    pub fn fields(&self) -> &[u8] {
        todo!()
    }
    /// Appends the head; from here on the framing is fixed.
    pub fn write_head(&mut self, _out: &mut Vec<u8>, _inputs: &HeadInputs<'_>) {
        todo!()
    }
    /// The application offers `len` body bytes. Appends what must precede them (a chunk's size) to `out` and
    /// returns how many of them to send (fewer than offered: no-body responses, excess over Content-Length).
    pub fn body(&mut self, _out: &mut Vec<u8>, _len: u64) -> u64 {
        todo!()
    }
    /// What follows the bytes of the piece just sent (`\r\n` of a chunk, or nothing).
    pub fn after_body(&self) -> &'static [u8] {
        todo!()
    }
    /// The application is done: appends the last chunk where one is due and says what becomes of the connection.
    pub fn end(&mut self, _out: &mut Vec<u8>) -> End {
        todo!()
    }
    /// Body bytes of the application that were counted (sent) so far.
    pub fn body_sent(&self) -> u64 {
        todo!()
    }
    /// Body bytes dropped because the response may not carry them or exceeded Content-Length.
    pub fn body_dropped(&self) -> u64 {
        todo!()
    }
    /// Appends an interim response (100, 103), HTTP/1.1 only and before the head; otherwise appends nothing.
    pub fn interim<'f>(
        &mut self,
        _out: &mut Vec<u8>,
        _status: u16,
        _fields: &mut dyn Iterator<Item = (&'f [u8], &'f [u8])>,
    ) -> Result<(), Fault> {
        todo!()
    }
}
