//! A reply as bytes: the reply machine decides, and the encoder of the connection's version of HTTP says it.
//!
//! Rule: no other file of the crate knows an encoder.
use tricorn_proto::http1::encode;
use tricorn_proto::response::{End, Fault, HeadInputs, Reply};

/// The interim response to a client that waits with its body.
pub const CONTINUE: &[u8] = encode::CONTINUE;

/// Appends the head, if it is due.
pub fn head(reply: &mut Reply, out: &mut Vec<u8>, inputs: &HeadInputs<'_>) {
    if let Some(head) = reply.head(inputs) {
        encode::head(out, &head);
    }
}

/// So many bytes of the body are offered: how many are sent, and what follows them. Appends what precedes them.
#[inline]
pub fn piece(reply: &mut Reply, out: &mut Vec<u8>, len: u64) -> (u64, &'static [u8]) {
    let portion = reply.body(len);
    encode::before(out, portion);
    (portion.length, encode::after(portion))
}

/// Ends the reply. Appends what follows the body.
#[inline]
pub fn end(reply: &mut Reply, out: &mut Vec<u8>) -> End {
    let ending = reply.end();
    encode::end(out, ending.mark);
    ending.end
}

/// Appends an interim response, where the reply has a place for it.
pub fn interim<'f>(
    reply: &Reply,
    out: &mut Vec<u8>,
    status: u16,
    fields: &mut dyn Iterator<Item = (&'f [u8], &'f [u8])>,
) -> Result<(), Fault> {
    if let Some(interim) = reply.interim(status, fields)? {
        encode::interim(out, &interim);
    }
    Ok(())
}
