//! Records of FastCGI, as they are written (FastCGI Specification section 3.3).

pub(super) const END_REQUEST: u8 = 3;
pub(super) const STDOUT: u8 = 6;
/// Bytes before the content of a record.
pub(super) const HEADER: usize = 8;
pub(super) const VERSION: u8 = 1;

/// What an END_REQUEST says (FastCGI Specification section 5.5).
pub(super) const COMPLETE: u8 = 0;
pub(super) const CANNOT_MULTIPLEX: u8 = 1;
pub(super) const UNKNOWN_ROLE: u8 = 3;

pub(super) fn end_request(id: u16, status: u8) -> Vec<u8> {
    record(END_REQUEST, id, &[0, 0, 0, 0, status, 0, 0, 0])
}

/// One record with this content, which is short.
pub(super) fn record(kind: u8, id: u16, content: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEADER + content.len());
    header(&mut out, kind, id, content.len() as u16);
    out.extend_from_slice(content);
    out
}

pub(super) fn header(out: &mut Vec<u8>, kind: u8, id: u16, length: u16) {
    let ([high, low], [long, short]) = (id.to_be_bytes(), length.to_be_bytes());
    out.extend_from_slice(&[VERSION, kind, high, low, long, short, 0, 0]);
}
