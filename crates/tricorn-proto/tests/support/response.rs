//! A reply as HTTP/1 text: what the machine decides, and the encoder says.
#![allow(dead_code)] // Not every test program needs all of this.
use tricorn_proto::http1::encode;
use tricorn_proto::response::{End, Fault, HeadInputs, Reply};

pub fn head(reply: &mut Reply, out: &mut Vec<u8>, inputs: &HeadInputs<'_>) {
    if let Some(head) = reply.head(inputs) {
        encode::head(out, &head);
    }
}

/// How many bytes are to be sent, and what follows them.
pub fn piece(reply: &mut Reply, out: &mut Vec<u8>, len: u64) -> (u64, &'static [u8]) {
    let portion = reply.body(len);
    encode::before(out, portion);
    (portion.length, encode::after(portion))
}

pub fn end(reply: &mut Reply, out: &mut Vec<u8>) -> End {
    let ending = reply.end();
    encode::end(out, ending.mark);
    ending.end
}

pub fn interim(reply: &Reply, out: &mut Vec<u8>, status: u16, fields: &[(&[u8], &[u8])]) -> Result<(), Fault> {
    if let Some(interim) = reply.interim(status, &mut fields.iter().copied())? {
        encode::interim(out, &interim);
    }
    Ok(())
}
