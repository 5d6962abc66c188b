//! The application's fields of one response, checked, and what they say.
use super::app_field::{Use, asks_to_close, classify};
use super::compression::Treatment;
use super::fault::{Fault, bad_name, bad_value};
use crate::message::FieldList;
use crate::message::grammar::{decimal, is_field_value, is_named, is_token, list, trim_ows};

/// Reused from reply to reply.
#[derive(Debug, Default)]
pub(super) struct Fields {
    list: FieldList,
    content_length: Option<u64>,
    /// Which of the list the Content-Length is.
    length_at: Option<u32>,
    has_server: bool,
    has_date: bool,
    has_request_id: bool,
    wants_close: bool,
    upgrades: bool,
    frames: bool,
}

impl Fields {
    #[inline]
    pub fn clear(&mut self) {
        self.list.clear();
        self.content_length = None;
        self.length_at = None;
        (self.has_server, self.has_date, self.has_request_id) = (false, false, false);
        (self.wants_close, self.upgrades, self.frames) = (false, false, false);
    }

    /// Adds a field, checked (token, no control characters), its value without blanks around it. Hop-by-hop ones are dropped.
    #[inline]
    pub fn add(&mut self, status: u16, name: &[u8], value: &[u8]) -> Result<(), Fault> {
        check(name, value)?;
        let value = trim_ows(value);
        match classify(name) {
            Use::Send => {}
            Use::ContentLength => {
                if !self.note_length(value)? {
                    return Ok(());
                }
                self.length_at = u32::try_from(self.list.len()).ok();
            }
            Use::Server => self.has_server = true,
            Use::Date => self.has_date = true,
            Use::RequestId => self.has_request_id = true,
            // gunicorn sends no other; but RFC 9110 section 15.5.22 wants it of every 426.
            Use::Upgrade if status != 426 && !value.eq_ignore_ascii_case(b"websocket") => return Ok(()),
            Use::Upgrade => self.upgrades = true,
            Use::Connection => {
                self.wants_close |= asks_to_close(value);
                return Ok(());
            }
            Use::TransferEncoding => {
                self.frames = true;
                return Ok(());
            }
            Use::Drop => return Ok(()),
        }
        self.list.push(name, value);
        Ok(())
    }

    /// Adds the field `Trailer`.
    pub fn announce_trailers(&mut self, names: &[u8]) -> Result<(), Fault> {
        check(b"trailer", names)?;
        self.list.push(b"trailer", names);
        Ok(())
    }

    /// Says what becomes of the response. With a coding the list has no Content-Length any more, though the application has promised one.
    pub fn treat(&mut self, treatment: Treatment, standing: &FieldList) {
        if !treatment.varies {
            return;
        }
        let before = std::mem::take(&mut self.list);
        let coded = treatment.coding.is_some();
        // The last Vary gets the name: some caches look at one line only.
        let last_vary =
            before.iter().enumerate().filter(|(_, (name, _))| is_named(name, b"vary")).map(|(at, _)| at).last();
        let says_so = before.iter().any(|(name, value)| is_named(name, b"vary") && varies(value));
        for (at, (name, value)) in before.iter().enumerate() {
            match name.len() {
                4 if last_vary == Some(at) && !says_so => {
                    self.list.push(name, &[value, b", Accept-Encoding"].concat());
                }
                4 if treatment.weakens && is_named(name, b"etag") && value.starts_with(b"\"") => {
                    self.list.push(name, &[b"W/", value].concat());
                }
                13 if coded && is_named(name, b"accept-ranges") => {}
                14 if coded && is_named(name, b"content-length") => self.length_at = None,
                _ => {
                    if self.length_at == Some(at as u32) {
                        self.length_at = u32::try_from(self.list.len()).ok();
                    }
                    self.list.push(name, value);
                }
            }
        }
        if let Some(coding) = treatment.coding {
            self.list.push(b"Content-Encoding", coding.name().as_bytes());
        }
        if last_vary.is_none() {
            // A standing field would not be sent beside it.
            let value = match standing.last(b"vary") {
                Some(value) if varies(value) => value.to_vec(),
                Some(value) => [value, b", Accept-Encoding"].concat(),
                None => b"Accept-Encoding".to_vec(),
            };
            self.list.push(b"Vary", &value);
        }
    }

    /// Whether this Content-Length is the first; a second one must say the same.
    fn note_length(&mut self, value: &[u8]) -> Result<bool, Fault> {
        let Some(length) = decimal(value) else {
            return Err(bad_value(b"Content-Length", value, "expected digits"));
        };
        match self.content_length.replace(length) {
            None => Ok(true),
            Some(before) if before == length => Ok(false),
            Some(before) => {
                self.content_length = Some(before);
                let text = format!("Content-Length is {before} and {length}; expected one length");
                Err(Fault::FieldValue(text))
            }
        }
    }

    #[inline]
    pub fn list(&self) -> &FieldList {
        &self.list
    }

    /// Which of the list the Content-Length is.
    #[inline]
    pub fn length_at(&self) -> Option<usize> {
        self.length_at.map(|at| at as usize)
    }

    #[inline]
    pub fn content_length(&self) -> Option<u64> {
        self.content_length
    }

    #[inline]
    pub fn has_server(&self) -> bool {
        self.has_server
    }

    #[inline]
    pub fn has_date(&self) -> bool {
        self.has_date
    }

    #[inline]
    pub fn has_request_id(&self) -> bool {
        self.has_request_id
    }

    /// Whether the connection is to be closed.
    #[inline]
    pub fn want_close(&self) -> bool {
        self.wants_close
    }

    /// Whether the application has named a Transfer-Encoding, which was dropped.
    pub fn frames(&self) -> bool {
        self.frames
    }

    /// Whether a protocol is named to switch to.
    #[inline]
    pub fn upgrade(&self) -> bool {
        self.upgrades
    }
}

/// Whether a value of Vary has Accept-Encoding among what it names.
fn varies(value: &[u8]) -> bool {
    list(value).any(|name| name == b"*" || name.eq_ignore_ascii_case(b"accept-encoding"))
}

/// The application must not be able to end a line: what follows would be a header, or a response, of its client's
/// making (response splitting).
#[inline]
pub(super) fn check(name: &[u8], value: &[u8]) -> Result<(), Fault> {
    if !is_token(name) {
        return Err(bad_name(name));
    }
    if !is_field_value(value) {
        return Err(bad_value(name, value, "expected no control characters"));
    }
    Ok(())
}
