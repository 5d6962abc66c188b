//! What a line of the access log is made of.
use super::Outcome;
use crate::message::{FieldList, RequestHead};

/// What a call's time was used for, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallTime {
    pub computed: u32,
    /// The thread waited for something, and did not want a processor.
    pub blocked: u32,
    /// The thread wanted a processor, and had none.
    pub delayed: u32,
    /// It had given way to other calls of its thread.
    pub yielded: u32,
}

/// One finished (or refused) request, as the log sees it.
pub struct Record<'a> {
    pub head: &'a RequestHead,
    /// The bytes the head's spans point into.
    pub bytes: &'a [u8],
    pub remote: &'a [u8],
    pub status: u16,
    /// The application's response fields.
    pub fields: &'a FieldList,
    pub sent: u64,
    pub micros: u64,
    /// `[21/Nov/2026:01:02:32 +0000]`
    pub time: &'a [u8],
    /// Milliseconds since then.
    pub millis: u16,
    pub pid: u32,
    /// Empty: it has none.
    pub request_id: &'a [u8],
    /// Microseconds it waited before the application was called; `None`: it was not.
    pub queue_micros: Option<u64>,
    /// What the time of its call was used for; `None`: it is not known.
    pub call_time: Option<CallTime>,
    /// What became of it; `None`: it is not known.
    pub outcome: Option<Outcome>,
    /// `%({NAME}e)s`: looks an environ key up.
    pub environ: &'a dyn Fn(&str) -> Option<Vec<u8>>,
}
