//! A message for syslog: as gunicorn's, or as RFC 5424 has it.
//!
//! ```text
//!   <14>gunicorn.PREFIX.access: [PID] MESSAGE NUL                            gunicorn, by way of SysLogHandler
//!   <14>1 2026-11-23T09:06:26.123456Z HOST PREFIX PID access - MESSAGE       RFC 5424 section 6
//!   LENGTH <14>1 …                                                           the same on a stream: RFC 6587 section 3.4.1
//! ```

/// What all messages of a log have in common, made once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// In front of a message, and behind it.
    Plain { head: Vec<u8>, tail: Vec<u8> },
    /// In front of the time, and between that and a message. On a stream the length comes before it all.
    Timed { head: Vec<u8>, rest: Vec<u8>, counted: bool },
}

impl Frame {
    /// Appends a message. `time` is text of RFC 3339.
    pub fn render(&self, time: impl FnOnce() -> String, message: &[u8], out: &mut Vec<u8>) {
        match self {
            Frame::Plain { head, tail } => [head, message, tail].iter().for_each(|part| out.extend_from_slice(part)),
            Frame::Timed { head, rest, counted } => {
                let time = time();
                let parts = [head, time.as_bytes(), rest, message];
                if *counted {
                    let length: usize = parts.iter().map(|part| part.len()).sum();
                    out.extend_from_slice(format!("{length} ").as_bytes());
                }
                parts.iter().for_each(|part| out.extend_from_slice(part));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(frame: &Frame) -> Vec<u8> {
        let mut out = Vec::new();
        frame.render(|| "2026-11-23T09:06:26.123456Z".into(), b"GET / 200", &mut out);
        out
    }

    #[test]
    fn a_message_is_gunicorns_with_a_nul_behind_it() {
        let frame = Frame::Plain { head: b"<14>gunicorn.shop.access: [7] ".into(), tail: b"\0".into() };
        assert_eq!(rendered(&frame), b"<14>gunicorn.shop.access: [7] GET / 200\0");
    }

    #[test]
    fn on_a_stream_the_length_of_all_that_follows_comes_first() {
        let timed = |counted| Frame::Timed { head: b"<14>1 ".into(), rest: b" web shop 7 access - ".into(), counted };
        let message = b"<14>1 2026-11-23T09:06:26.123456Z web shop 7 access - GET / 200";
        assert_eq!(rendered(&timed(false)), message);
        let framed = rendered(&timed(true));
        assert_eq!(framed.strip_prefix(format!("{} ", message.len()).as_bytes()), Some(message.as_slice()));
    }
}
