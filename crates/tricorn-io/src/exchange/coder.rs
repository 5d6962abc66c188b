//! How far the coding of a reply's body is. `compressed.rs` says what follows what.
use crate::compress::{Compressors, Stream};
use crate::files::{NamedBy, Watched};
use std::sync::Arc;
use tricorn_proto::message::FieldList;

/// What becomes of the pieces of a body.
#[derive(Default)]
pub(crate) enum Coder {
    /// They are sent as they are.
    #[default]
    Off,
    /// That is decided with the head.
    Ready(Arc<Compressors>),
    Stream(Box<Stream>),
    /// The head may name a file that is sent in place of the body. With what decides if it does not.
    Watching(Option<Arc<Compressors>>, Watched),
    /// It does: the body is dropped.
    Named(Box<NamedFile>),
    /// Nothing more is sent.
    Broken,
}

/// A file that the application has named, and what it has said besides.
pub(crate) struct NamedFile {
    pub by: NamedBy,
    pub name: Vec<u8>,
    pub status: u16,
    /// Its fields, but for the names of files, and the length of the body that is dropped.
    pub fields: FieldList,
    /// Whether the connection may be kept. `None`: the application has not ended its response.
    pub keep: Option<bool>,
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
