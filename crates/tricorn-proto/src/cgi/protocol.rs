//! The three protocols, and what bounds all of them.
use crate::message::{Refusal, RefusalKind};

/// What a front end speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    Uwsgi,
    Scgi,
    FastCgi,
}

/// Most vars of a request (gunicorn's number).
pub const MAX_VARS: usize = 1000;
/// Most bytes of them, with what frames them. The format of uwsgi has no room for more than 65,535.
pub const MAX_BYTES: usize = 256 * 1024;

#[cold]
pub(super) fn wrong(what: &str) -> Box<Refusal> {
    Box::new(Refusal::new(RefusalKind::Vars, what))
}
