//! One compressor of a coding: bytes in, bytes out.
use brotli::enc::StandardAlloc;
use brotli::enc::encode::{BrotliEncoderOperation, BrotliEncoderParameter, BrotliEncoderStateStruct};
use flate2::{Compress, Compression, FlushCompress, Status};
use tricorn_proto::message::coding::Coding;
use zstd_safe::zstd_sys::ZSTD_EndDirective;
use zstd_safe::{CCtx, CParameter, InBuffer, OutBuffer, ResetDirective};

/// How much time is spent on a byte. `docs/guides/compression.md` has what each costs, measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effort {
    /// For streams, and for bodies whose compression would hold an event loop up. Half a MiB of memory at most.
    Quick,
    /// For whole bodies. 1.7 MiB of memory at most.
    Thorough,
}

/// What follows a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Then {
    /// Another piece at once: bytes may be kept for it.
    Piece,
    /// A pause: the receiver can read everything so far.
    Flush,
    End,
}

/// A library has refused: it has no memory, or a defect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failed;

pub(super) enum Encoder {
    Gzip(Box<Compress>),
    Brotli(Box<BrotliEncoderStateStruct<StandardAlloc>>),
    Zstd(CCtx<'static>),
}

/// RFC 1952 with the whole window of deflate.
const GZIP_WINDOW: u8 = 15;

impl Encoder {
    pub fn new(coding: Coding, effort: Effort) -> Result<Encoder, Failed> {
        Ok(match coding {
            Coding::Gzip => {
                let level = if effort == Effort::Quick { 1 } else { 4 };
                Encoder::Gzip(Box::new(Compress::new_gzip(Compression::new(level), GZIP_WINDOW)))
            }
            Coding::Brotli => {
                // Level 5 with a window of 16 bits has a hash table of 32 MiB.
                let (quality, window) = if effort == Effort::Quick { (2, 16) } else { (4, 18) };
                let mut encoder = BrotliEncoderStateStruct::new(StandardAlloc::default());
                encoder.set_parameter(BrotliEncoderParameter::BROTLI_PARAM_QUALITY, quality);
                encoder.set_parameter(BrotliEncoderParameter::BROTLI_PARAM_LGWIN, window);
                Encoder::Brotli(Box::new(encoder))
            }
            Coding::Zstd => {
                let (level, window) = if effort == Effort::Quick { (1, 16) } else { (3, 17) };
                let mut context = CCtx::try_create().ok_or(Failed)?;
                context.set_parameter(CParameter::CompressionLevel(level)).map_err(|_| Failed)?;
                context.set_parameter(CParameter::WindowLog(window)).map_err(|_| Failed)?;
                Encoder::Zstd(context)
            }
        })
    }

    /// So many bytes are all there is to come: a frame of zstd says so, and its compressor takes no more memory than it needs.
    pub fn expect(&mut self, length: usize) {
        match self {
            Encoder::Zstd(context) => _ = context.set_pledged_src_size(Some(length as u64)),
            Encoder::Brotli(encoder) => {
                let length = u32::try_from(length).unwrap_or(u32::MAX);
                encoder.set_parameter(BrotliEncoderParameter::BROTLI_PARAM_SIZE_HINT, length);
            }
            Encoder::Gzip(_) => {}
        }
    }

    /// Compresses a piece, and appends what comes of it.
    pub fn encode(&mut self, piece: &[u8], then: Then, out: &mut Vec<u8>) -> Result<(), Failed> {
        // What a flush of a small piece takes, and most of a large one.
        let room = 512 + piece.len() / 4;
        match self {
            Encoder::Gzip(compress) => gzip(compress, piece, then, out, room),
            Encoder::Brotli(encoder) => brotli(encoder, piece, then, out, room),
            Encoder::Zstd(context) => zstd(context, piece, then, out, room),
        }
    }

    /// Makes it ready for another body; false: it serves for one only.
    pub fn renew(&mut self) -> bool {
        match self {
            Encoder::Gzip(compress) => {
                compress.reset();
                true
            }
            Encoder::Brotli(_) => false,
            Encoder::Zstd(context) => context.reset(ResetDirective::SessionOnly).is_ok(),
        }
    }
}

fn gzip(compress: &mut Compress, mut piece: &[u8], then: Then, out: &mut Vec<u8>, room: usize) -> Result<(), Failed> {
    let flush = match then {
        Then::Piece => FlushCompress::None,
        Then::Flush => FlushCompress::Sync,
        Then::End => FlushCompress::Finish,
    };
    loop {
        out.reserve(room);
        let before = compress.total_in();
        let status = compress.compress_vec(piece, out, flush).map_err(|_| Failed)?;
        piece = piece.get((compress.total_in() - before) as usize..).unwrap_or_default();
        let is_done = match then {
            // zlib.h: with room left in the output, a flush is complete.
            Then::Piece | Then::Flush => piece.is_empty() && out.len() < out.capacity(),
            Then::End => status == Status::StreamEnd,
        };
        if is_done {
            return Ok(());
        }
    }
}

fn brotli(
    encoder: &mut BrotliEncoderStateStruct<StandardAlloc>,
    piece: &[u8],
    then: Then,
    out: &mut Vec<u8>,
    room: usize,
) -> Result<(), Failed> {
    let operation = match then {
        Then::Piece => BrotliEncoderOperation::BROTLI_OPERATION_PROCESS,
        Then::Flush => BrotliEncoderOperation::BROTLI_OPERATION_FLUSH,
        Then::End => BrotliEncoderOperation::BROTLI_OPERATION_FINISH,
    };
    let (mut left, mut at) = (piece.len(), 0);
    loop {
        let start = out.len();
        out.resize(start + room, 0);
        let (mut free, mut filled) = (room, 0);
        let is_fine = encoder.compress_stream(
            operation,
            &mut left,
            piece,
            &mut at,
            &mut free,
            &mut out[start..],
            &mut filled,
            &mut None,
            &mut |_, _, _, _| (),
        );
        out.truncate(start + filled);
        if !is_fine {
            return Err(Failed);
        }
        if left == 0 && !encoder.has_more_output() && (then != Then::End || encoder.is_finished()) {
            return Ok(());
        }
    }
}

fn zstd(context: &mut CCtx<'_>, piece: &[u8], then: Then, out: &mut Vec<u8>, room: usize) -> Result<(), Failed> {
    let directive = match then {
        Then::Piece => ZSTD_EndDirective::ZSTD_e_continue,
        Then::Flush => ZSTD_EndDirective::ZSTD_e_flush,
        Then::End => ZSTD_EndDirective::ZSTD_e_end,
    };
    let mut input = InBuffer::around(piece);
    loop {
        out.reserve(room);
        let at = out.len();
        let mut output = OutBuffer::around_pos(out, at);
        let left = context.compress_stream2(&mut output, &mut input, directive).map_err(|_| Failed)?;
        // zstd.h: the number is what is left to be flushed; for `continue` it says nothing.
        if input.pos() == piece.len() && (left == 0 || then == Then::Piece) {
            return Ok(());
        }
    }
}
