//! Parts of a response (`encode`) become frames, as far as the windows and the output take them.
//!
//! ```text
//!   Between ──mark of DATA──▶ Content { left } ── all of it sent ──▶ Between
//!      │ ▲
//!      │ └── complete: HEADERS
//!      └──any other part, of which some has come──▶ Gathering
//!   any ──the stream is over, or was reset──▶ Failed
//! ```
use super::connection::Connection;
use super::encode::{BARE_END, DATA, END, Fields, HEAD, INTERIM, MARK, read_head};
use super::reading::Reading;
use super::send::EndStream;
use super::unsendable::Unsendable;

impl Connection {
    /// Sends bytes of a stream's response, which is parts one behind the other, cut anywhere. How many were taken: fewer if the
    /// windows, or what waits for the peer, let no more DATA go. Then [`Connection::offer`] has the stream named when that changes.
    ///
    /// # Errors
    /// The stream is over, or was reset; or its parts are in no good order. The same comes of all that is written then.
    pub fn write(&mut self, stream: u32, bytes: &[u8]) -> Result<usize, Unsendable> {
        let mut at = 0;
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            let reading = std::mem::take(&mut self.streams.get_mut(stream).ok_or(Unsendable::Closed)?.reading);
            let read = match reading {
                Reading::Content { left } => self.write_content(stream, left, rest),
                Reading::Between => self.write_part(stream, rest),
                Reading::Gathering(part) => self.gather(stream, part, rest),
                Reading::Failed(why) => Err(why),
            };
            let (reading, result) = match read {
                Ok((reading, count)) => (reading, Ok(count)),
                Err(why) => (Reading::Failed(why), Err(why)),
            };
            if let Some(found) = self.streams.get_mut(stream) {
                found.reading = reading;
            }
            match result? {
                0 => break,
                count => at += count,
            }
        }
        Ok(at)
    }

    /// Sends one frame of content, of which so much is `left`. What is read next, and how many bytes were taken: the end, if that is
    /// next, travels with it.
    fn write_content(&mut self, stream: u32, left: u64, rest: &[u8]) -> Result<(Reading, usize), Unsendable> {
        let length = rest.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let (content, behind) = rest.split_at(length);
        let is_last = length as u64 == left && behind.starts_with(&BARE_END);
        let end = if is_last { EndStream::Yes } else { EndStream::No };
        let sent = self.send_data(stream, content, end)?;
        let taken = if is_last && sent == length { sent + MARK } else { sent };
        let left = left - sent as u64;
        Ok((if left > 0 { Reading::Content { left } } else { Reading::Between }, taken))
    }

    /// Looks at what begins a part.
    fn write_part(&mut self, stream: u32, rest: &[u8]) -> Result<(Reading, usize), Unsendable> {
        let Some((kind, length)) = mark(rest) else { return Ok((Reading::Gathering(rest.to_vec()), rest.len())) };
        if kind == DATA {
            return Ok((Reading::Content { left: length }, MARK));
        }
        let whole = MARK.saturating_add(usize::try_from(length).unwrap_or(usize::MAX));
        match rest.get(MARK..whole) {
            Some(payload) => {
                self.send_part(stream, kind, payload)?;
                Ok((Reading::Between, whole))
            }
            None => Ok((Reading::Gathering(rest.to_vec()), rest.len())),
        }
    }

    /// More of a part has come.
    fn gather(&mut self, stream: u32, mut part: Vec<u8>, rest: &[u8]) -> Result<(Reading, usize), Unsendable> {
        let wanted = match mark(&part) {
            Some((_, length)) => MARK.saturating_add(usize::try_from(length).unwrap_or(usize::MAX)),
            None => MARK,
        };
        let count = rest.len().min(wanted.saturating_sub(part.len()));
        part.extend_from_slice(&rest[..count]);
        // A part that is complete is read as one that came at once; of content only the mark is gathered.
        match self.write_part(stream, &part)? {
            (Reading::Gathering(_), _) => Ok((Reading::Gathering(part), count)),
            (reading, _) => Ok((reading, count)),
        }
    }

    fn send_part(&mut self, stream: u32, kind: u8, payload: &[u8]) -> Result<(), Unsendable> {
        match kind {
            END if payload.is_empty() => self.send_end(stream),
            END => self.send_trailer_fields(stream, Fields::of(payload)),
            HEAD | INTERIM => {
                let (status, end, fields) = read_head(payload).ok_or(Unsendable::Order)?;
                match kind {
                    HEAD => self.send_head_fields(stream, status, fields, end),
                    _ => self.send_interim_fields(stream, status, fields),
                }
            }
            _ => Err(Unsendable::Order),
        }
    }
}

fn mark(bytes: &[u8]) -> Option<(u8, u64)> {
    let (&kind, rest) = bytes.split_first()?;
    Some((kind, u64::from_le_bytes(*rest.first_chunk()?)))
}
