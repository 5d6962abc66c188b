//! gunicorn's access log format: compiled once, rendered per request from plain data.
use crate::http1::RequestHead;

/// One finished (or refused) request, as the log sees it.
pub struct Record<'a> {
    pub head: &'a RequestHead,
    /// The bytes the head's spans point into.
    pub bytes: &'a [u8],
    pub remote: &'a [u8],
    pub status: u16,
    /// The application's response fields as encoded (`Name: value\r\n` …).
    pub fields: &'a [u8],
    pub sent: u64,
    pub micros: u64,
    /// `[21/Nov/2026:01:02:32 +0000]`
    pub time: &'a [u8],
    pub pid: u32,
    /// `%({NAME}e)s`: looks an environ key up.
    pub environ: &'a dyn Fn(&str) -> Option<Vec<u8>>,
}

#[derive(Debug, Clone)]
pub struct Format {}

impl Format {
    /// Compiles `%(h)s … %({header}i)s`; the error says which atom is unknown and which exist.
    pub fn parse(_text: &str) -> Result<Format, String> {
        todo!()
    }
    /// Appends one line, newline included.
    pub fn render(&self, _record: &Record<'_>, _out: &mut Vec<u8>) {
        todo!()
    }
}
