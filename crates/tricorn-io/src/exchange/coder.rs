//! How far the coding of a reply's body is. `compressed.rs` says what follows what.
use crate::compress::{Compressors, Stream};
use std::sync::Arc;

/// What becomes of the pieces of a body.
#[derive(Default)]
pub(crate) enum Coder {
    /// They are sent as they are.
    #[default]
    Off,
    /// That is decided with the head.
    Ready(Arc<Compressors>),
    Stream(Box<Stream>),
    /// Nothing more is sent.
    Broken,
}

impl Coder {
    pub fn of(compressors: Option<&Arc<Compressors>>) -> Coder {
        compressors.map_or(Coder::Off, |compressors| Coder::Ready(compressors.clone()))
    }

    #[inline]
    pub fn is_off(&self) -> bool {
        matches!(self, Coder::Off)
    }
}
