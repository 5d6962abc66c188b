//! A file as a response: whole, in parts, or what RFC 9110 has in its place (sections 13 and 14).
use super::Exchange;
use super::cached::CACHED;
use super::outbox::SharedBytes;
use super::output::Disks;
use crate::disk::DiskFile;
use crate::sys::random_seed;
use rustix::fd::OwnedFd;
use std::sync::Arc;
use tricorn_proto::message::status::reason;
use tricorn_proto::message::{FieldList, RequestHead};
use tricorn_proto::representation::{
    Conditions, EntityTag, Multipart, Part, Selected, Verdict, content_range, judge, parse_http_date, unsatisfied_range,
};
use tricorn_proto::response::{Fault, HeadInputs, error_page};

/// What is sent with 200 to a request without conditions.
pub(crate) struct Representation<'f> {
    pub file: OwnedFd,
    /// Where it begins in the file.
    pub offset: u64,
    pub length: u64,
    /// What conditions and ranges are for is 200. Another status is sent with the whole.
    pub status: u16,
    /// All that is told of it, but for its length: its type, its validators if it has any, and whatever else.
    pub fields: &'f FieldList,
    /// Most bytes that the calling thread sends by sendfile(2), if the page cache has them.
    pub most_cached: u64,
}

impl Exchange {
    /// Answers with a file, as far as the request wants it. `now`: the time, in seconds since 1970.
    pub(crate) fn answer_file(
        &mut self,
        disks: &Disks,
        inputs: &HeadInputs<'_>,
        what: Representation<'_>,
        now: i64,
    ) -> Result<(), Fault> {
        let fields = what.fields;
        let selected = Selected {
            etag: fields.last(b"etag").and_then(EntityTag::parse),
            modified: fields.last(b"last-modified").and_then(|date| parse_http_date(date, now)),
            length: what.length,
        };
        let head = &self.request.head;
        let conditions = Conditions::of(values(head, self.request.head_bytes()));
        let status = what.status;
        let verdict = if status == 200 { judge(head.kind, &conditions, &selected, now) } else { Verdict::Whole };
        match verdict {
            Verdict::Whole if status != 200 => {
                self.say(status, fields.iter())?;
                self.send_part(disks, inputs, what, None);
            }
            Verdict::Whole => {
                self.say(200, fields.iter().chain([ACCEPTS_RANGES]))?;
                self.send_part(disks, inputs, what, None);
            }
            Verdict::Range(part) => {
                let range = content_range(part, what.length);
                self.say(206, fields.iter().chain([ACCEPTS_RANGES, (b"Content-Range", range.as_bytes())]))?;
                self.send_part(disks, inputs, what, Some(part));
            }
            Verdict::Ranges(parts) => self.send_ranges(disks, inputs, what, &parts)?,
            Verdict::NotModified => {
                self.say(304, fields.iter().filter(|(name, _)| !is_of_content(name)))?;
                self.write_last(inputs, b"", nothing);
            }
            Verdict::PreconditionFailed => self.answer_page(inputs, 412, fields.iter().filter(is_of_errors))?,
            Verdict::Unsatisfiable => {
                let range = unsatisfied_range(what.length);
                let ranges = [ACCEPTS_RANGES, (b"Content-Range", range.as_bytes())];
                self.answer_page(inputs, 416, fields.iter().filter(is_of_errors).chain(ranges))?;
            }
        }
        Ok(())
    }

    /// Answers with a part of a file that the application has opened, if it has set validators: without them a client could not tell whether
    /// two parts are of the same file. Nothing is done otherwise, nor where the application sees to ranges itself.
    pub(crate) fn answer_own_file(
        &mut self,
        disks: &Disks,
        inputs: &HeadInputs<'_>,
        (file, offset, length): (OwnedFd, u64, u64),
        now: i64,
    ) -> Result<(), OwnedFd> {
        let reply = &self.request.reply;
        let fields = reply.fields();
        let is_named = |name: &[u8]| fields.last(name).is_some();
        let is_whole =
            !reply.head_sent() && reply.status_code() == 200 && reply.content_length().is_none_or(|all| all == length);
        let has_validator = is_named(b"etag") || is_named(b"last-modified");
        let sees_to_it = is_named(b"content-range") || is_named(b"accept-ranges");
        if !is_whole || !has_validator || sees_to_it {
            return Err(file);
        }
        let fields = fields.iter().filter(|(name, _)| !name.eq_ignore_ascii_case(b"content-length"));
        let fields = FieldList::from_iter(fields);
        let what = Representation { file, offset, length, status: 200, fields: &fields, most_cached: CACHED };
        if self.answer_file(disks, inputs, what, now).is_err() {
            self.give_up(500, ""); // not of fields that it has accepted before
        }
        Ok(())
    }

    /// Answers with a page of the server's own, and the connection may be kept.
    pub(crate) fn answer_page<'f>(
        &mut self,
        inputs: &HeadInputs<'_>,
        status: u16,
        fields: impl Iterator<Item = (&'f [u8], &'f [u8])>,
    ) -> Result<(), Fault> {
        self.say(status, fields.chain([(&b"Content-Type"[..], &b"text/html"[..])]))?;
        let page = error_page::html(status, "");
        let inputs = HeadInputs { body_length: Some(page.len() as u64), ..*inputs };
        self.write_last(&inputs, &page, || Box::new(page.clone()));
        Ok(())
    }

    /// Sets the status and the fields, in place of those that were set.
    fn say<'f>(&mut self, status: u16, fields: impl Iterator<Item = (&'f [u8], &'f [u8])>) -> Result<(), Fault> {
        let reply = &mut self.request.reply;
        reply.status(format!("{status} {}", reason(status)).as_bytes())?;
        for (name, value) in fields {
            reply.field(name, value)?;
        }
        Ok(())
    }

    fn send_part(&mut self, disks: &Disks, inputs: &HeadInputs<'_>, what: Representation<'_>, part: Option<Part>) {
        let Part { start, length } = part.unwrap_or(Part { start: 0, length: what.length });
        let inputs = HeadInputs { body_length: Some(length), ..*inputs };
        if length == 0 {
            self.write_last(&inputs, b"", nothing);
            return;
        }
        self.write_cached_file(disks, &inputs, (what.file, what.offset + start, length), what.most_cached);
        self.end();
    }

    fn send_ranges(
        &mut self,
        disks: &Disks,
        inputs: &HeadInputs<'_>,
        what: Representation<'_>,
        parts: &[Part],
    ) -> Result<(), Fault> {
        let unique = random_seed().iter().take(16).fold(0, |unique: u128, byte| unique << 8 | u128::from(*byte));
        let content_type = what.fields.last(b"content-type").unwrap_or_default();
        let multipart = Multipart::new(unique, content_type, parts, what.length);
        let (kind, others) = (multipart.content_type(), |name: &[u8]| !name.eq_ignore_ascii_case(b"content-type"));
        let fields = what.fields.iter().filter(|(name, _)| others(name));
        self.say(206, fields.chain([ACCEPTS_RANGES, (b"Content-Type", kind.as_bytes())]))?;
        let inputs = HeadInputs { body_length: Some(multipart.length()), ..*inputs };
        let file = Arc::new(DiskFile::new(what.file, disks.pool()));
        for (head, part) in multipart.parts() {
            self.write(&inputs, head, || Box::new(head.to_vec()));
            self.write_shared_file(&inputs, &file, (what.offset + part.start, part.length));
        }
        let end = multipart.end();
        self.write_last(&inputs, &end, || Box::new(end.clone()));
        Ok(())
    }
}

const ACCEPTS_RANGES: (&[u8], &[u8]) = (b"Accept-Ranges", b"bytes");

fn nothing() -> SharedBytes {
    Box::new(Vec::new())
}

/// Name and value of each field of a request.
fn values<'r>(head: &'r RequestHead, bytes: &'r [u8]) -> impl Iterator<Item = (&'r [u8], &'r [u8])> {
    head.fields.iter().map(|field| (field.name.of(bytes), field.value.of(bytes)))
}

/// Whether a field tells of the content, which 304 has not (RFC 9110 section 15.4.5).
fn is_of_content(name: &[u8]) -> bool {
    const CONTENT: [&[u8]; 6] = [
        b"content-type",
        b"content-length",
        b"content-encoding",
        b"content-language",
        b"content-range",
        b"content-disposition",
    ];
    CONTENT.iter().any(|other| name.eq_ignore_ascii_case(other))
}

/// Whether a field is told with an error, too: one that says how long to keep the representation is not of it.
fn is_of_errors((name, _): &(&[u8], &[u8])) -> bool {
    const KEPT: [&[u8]; 5] = [b"cache-control", b"expires", b"etag", b"last-modified", b"accept-ranges"];
    !is_of_content(name) && !KEPT.iter().any(|other| name.eq_ignore_ascii_case(other))
}
