//! The body of a reply on its way to the client: as it is, or compressed.
//!
//! ```text
//!   Ready ──head──▶ Off        the body is sent as it is, or was compressed as a whole
//!                └▶ Stream ──end──▶ Off      each piece is compressed and flushed before it is sent
//!                     └── the library fails ──▶ Broken: cut off
//! ```
//!
//! Which of them is decided with the head (`tricorn_proto::response::compression`), by what is known then. The end of a body that the
//! application has not ended is not made: it would look whole.
use super::Exchange;
use super::coder::Coder;
use super::lane::Sent;
use super::outbox::SharedBytes;
use crate::compress::Failed;
use rustix::fd::OwnedFd;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use tricorn_proto::message::Method;
use tricorn_proto::response::compression::{Asked, Length, Said};
use tricorn_proto::response::{End, HeadInputs};

/// From this size on a piece is compressed without the GIL: that takes longer than to take it again.
const WITHOUT_GIL: usize = 16 * 1024;

/// Bytes of a file that are read and compressed at once.
const FILE_PIECE: usize = 64 * 1024;

/// Compressed bytes, which have one owner for all that waits of them.
#[derive(Clone)]
struct Encoded(Arc<Vec<u8>>);

impl AsRef<[u8]> for Encoded {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Exchange {
    /// Whether a piece of this length may be compressed, so that it should be written without the GIL.
    #[inline]
    pub fn is_long_to_compress(&self, length: usize) -> bool {
        length >= WITHOUT_GIL && !self.coder.is_off()
    }

    /// Sends a piece of the body, and the head before the first one.
    ///
    /// `keep` is called if the bytes must outlive this call; it gives an owner of the same bytes.
    pub(crate) fn write(&mut self, inputs: &HeadInputs<'_>, piece: &[u8], keep: impl FnOnce() -> SharedBytes) -> Sent {
        if !self.coder.is_off() {
            return self.write_coded(inputs, piece, keep);
        }
        self.learn_session(piece);
        self.write_plain(inputs, piece, keep)
    }

    /// Sends a piece that is all the rest of the body, and ends the reply with it.
    pub fn write_last(&mut self, inputs: &HeadInputs<'_>, piece: &[u8], keep: impl FnOnce() -> SharedBytes) -> End {
        if !self.coder.is_off() {
            return self.write_last_coded(inputs, piece, keep);
        }
        self.learn_session(piece);
        self.write_last_plain(inputs, piece, keep)
    }

    /// Ends the reply after its last piece.
    pub fn end(&mut self) -> End {
        if self.coder.is_off() { self.end_plain() } else { self.end_coded(b"") }
    }

    /// [`Exchange::write`] of a reply that may be compressed.
    #[inline(never)]
    fn write_coded(&mut self, inputs: &HeadInputs<'_>, piece: &[u8], keep: impl FnOnce() -> SharedBytes) -> Sent {
        let mut inputs = *inputs;
        if self.names_file(&inputs) {
            return self.drop_piece(piece.len() as u64);
        }
        if let Some(whole) = self.begin_coding(&mut inputs, piece, false) {
            return self.write_encoded(&inputs, whole);
        }
        let encoded = match &mut self.coder {
            Coder::Stream(stream) => stream.encode(self.request.reply.offer(piece)),
            Coder::Broken => return Sent::Gone,
            _ => return self.write_plain(&inputs, piece, keep),
        };
        match encoded {
            Ok(encoded) => self.write_encoded(&inputs, encoded),
            Err(Failed) => self.break_off(),
        }
    }

    /// [`Exchange::write_last`] of a reply that may be compressed.
    #[inline(never)]
    fn write_last_coded(&mut self, inputs: &HeadInputs<'_>, piece: &[u8], keep: impl FnOnce() -> SharedBytes) -> End {
        let mut inputs = *inputs;
        if self.names_file(&inputs) {
            self.drop_piece(piece.len() as u64);
            return self.end_named();
        }
        if let Some(whole) = self.begin_coding(&mut inputs, piece, true) {
            return self.write_last_encoded(&inputs, whole);
        }
        if self.coder.is_off() {
            return self.write_last_plain(&inputs, piece, keep);
        }
        self.end_coded(piece)
    }

    /// Ends a reply that may be compressed, after its last piece.
    #[inline(never)]
    fn end_coded(&mut self, piece: &[u8]) -> End {
        let encoded = match &mut self.coder {
            Coder::Stream(stream) => {
                let piece = self.request.reply.offer(piece);
                // The promised length was not kept: the connection says so by closing.
                if self.request.reply.missing() > 0 { stream.encode(piece) } else { stream.finish(piece) }
            }
            Coder::Broken => {
                self.request.reply.end();
                return End::Close;
            }
            Coder::Named(_) => return self.end_named(),
            Coder::Off | Coder::Ready(_) | Coder::Watching(..) => {
                self.coder = Coder::Off;
                return self.end_plain();
            }
        };
        match encoded {
            Ok(encoded) => {
                self.coder = Coder::Off;
                self.write_last_encoded(&HeadInputs::default(), encoded)
            }
            Err(Failed) => {
                self.break_off();
                self.end_coded(b"")
            }
        }
    }

    /// Whether bytes of a file cannot be sent as they are, since the head has said that the body is compressed. Before the head they can:
    /// files are sent by the kernel, and those worth it are compressed once, not for each request.
    pub(super) fn encodes_file(&mut self) -> bool {
        if let Coder::Ready(_) = self.coder {
            self.coder = Coder::Off;
        }
        !self.coder.is_off()
    }

    /// Sends bytes of a file behind a head that has said that the body is compressed.
    #[cold]
    pub(super) fn encode_file(&mut self, file: OwnedFd, offset: u64, length: u64) -> Sent {
        let (file, mut at, end) = (File::from(file), offset, offset.saturating_add(length));
        let (mut piece, mut sent) = (vec![0; FILE_PIECE], Sent::Accepted);
        while at < end && sent != Sent::Gone {
            let most = FILE_PIECE.min(usize::try_from(end - at).unwrap_or(FILE_PIECE));
            // A file that is shorter than it was is found by its length, as for the kernel.
            let Ok(count @ 1..) = file.read_at(&mut piece[..most], at) else { return self.break_off() };
            let bytes = &piece[..count];
            sent = self.write_coded(&HeadInputs::default(), bytes, || Box::new(bytes.to_vec()));
            at += count as u64;
        }
        sent
    }

    /// Decides what becomes of the body, if its head was not sent. The whole body compressed, if this piece is that. `is_last`: no other
    /// piece follows.
    fn begin_coding(&mut self, inputs: &mut HeadInputs<'_>, piece: &[u8], is_last: bool) -> Option<Vec<u8>> {
        self.learn_session(piece);
        if !matches!(self.coder, Coder::Ready(_)) {
            return None;
        }
        let Coder::Ready(compressors) = std::mem::take(&mut self.coder) else { return None };
        let request = &mut *self.request;
        let (promised, here) = (request.reply.content_length(), piece.len() as u64);
        let is_head = request.head.kind == Method::Head;
        let length = match promised {
            Some(length) => Length::Known(length),
            None if is_last && is_head && here == 0 => Length::Untold,
            None if is_last => Length::Known(here),
            None => inputs.body_length.map_or(Length::Open, Length::Known),
        };
        let asked = Asked { head: &request.head, bytes: request.head_bytes() };
        let (status, fields) = (request.reply.status_code(), request.reply.fields());
        let said = Said { status, fields, standing: inputs.standing, length };
        let treatment = compressors.policy().decide(asked, said);
        let Some(coding) = treatment.coding else {
            request.reply.treat(treatment, inputs.standing);
            return None;
        };
        if is_head {
            request.reply.treat(treatment, inputs.standing);
            inputs.body_length = None;
            return None;
        }
        // What is offered beyond the promise, or less, is seen to where nothing is compressed.
        let is_whole = is_last && promised.is_none_or(|promised| promised == here) || promised == Some(here);
        if is_whole && let Some(whole) = compressors.whole(coding, piece) {
            request.reply.treat(treatment, inputs.standing);
            request.reply.offer(piece);
            inputs.body_length = Some(whole.len() as u64);
            return Some(whole);
        }
        let at_hand = inputs.body_length.is_some();
        match compressors.stream(coding, at_hand).filter(|_| !is_last && !is_whole) {
            Some(stream) => {
                request.reply.treat(treatment, inputs.standing);
                self.coder = Coder::Stream(Box::new(stream));
                inputs.body_length = None;
            }
            None => request.reply.treat(treatment.uncoded(), inputs.standing),
        }
        None
    }

    fn write_encoded(&mut self, inputs: &HeadInputs<'_>, encoded: Vec<u8>) -> Sent {
        let encoded = Encoded(Arc::new(encoded));
        self.write_plain(inputs, encoded.as_ref(), || Box::new(encoded.clone()))
    }

    fn write_last_encoded(&mut self, inputs: &HeadInputs<'_>, encoded: Vec<u8>) -> End {
        let encoded = Encoded(Arc::new(encoded));
        self.write_last_plain(inputs, encoded.as_ref(), || Box::new(encoded.clone()))
    }

    /// The reply is cut off where it is.
    #[cold]
    fn break_off(&mut self) -> Sent {
        self.coder = Coder::Broken;
        self.abort();
        Sent::Gone
    }
}
