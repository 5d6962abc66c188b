//! The vars of a request in one form, whatever protocol has brought them, and what they mean (RFC 3875).
//!
//! ```text
//!   block = protocol (1 byte), flags (1), id (2), *( pair )
//!   pair  = length of the key (4), length of the value (4), key, value
//! ```
use super::protocol::{MAX_VARS, Protocol, wrong};
use crate::message::grammar::{is_field_value, is_token};
use crate::message::target::percent_decode;
use crate::message::{Refusal, RefusalKind, Version};
use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};

/// What is known of a request besides its vars.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    pub protocol: Protocol,
    /// Its number on the connection (FastCGI).
    pub id: u16,
    /// The connection is kept for another one (FastCGI).
    pub keep: bool,
    /// SCRIPT_NAME is still at the beginning of PATH_INFO (uwsgi's modifier 30).
    pub mounted: bool,
}

impl Origin {
    pub fn of(protocol: Protocol) -> Origin {
        Origin { protocol, id: 0, keep: false, mounted: false }
    }

    /// How a response is said.
    pub fn version(self) -> Version {
        match self.protocol {
            Protocol::Uwsgi => Version::Uwsgi,
            Protocol::Scgi => Version::Scgi,
            Protocol::FastCgi => Version::FastCgi(self.id),
        }
    }
}

/// Writes a block.
pub(super) struct Writer<'b> {
    block: &'b mut Vec<u8>,
    count: usize,
}

impl<'b> Writer<'b> {
    pub fn new(block: &'b mut Vec<u8>, origin: Origin) -> Writer<'b> {
        let protocol = match origin.protocol {
            Protocol::Uwsgi => 1,
            Protocol::Scgi => 2,
            Protocol::FastCgi => 3,
        };
        let [high, low] = origin.id.to_be_bytes();
        block.extend_from_slice(&[protocol, u8::from(origin.keep) | u8::from(origin.mounted) << 1, high, low]);
        Writer { block, count: 0 }
    }

    pub fn pair(&mut self, key: &[u8], value: &[u8]) -> Result<(), Box<Refusal>> {
        self.count += 1;
        if self.count > MAX_VARS {
            return Err(wrong("more than 1000 vars"));
        }
        if key.is_empty() {
            return Err(wrong("a var without a name"));
        }
        // A block is shorter than `MAX_BYTES`.
        self.block.extend_from_slice(&(key.len() as u32).to_be_bytes());
        self.block.extend_from_slice(&(value.len() as u32).to_be_bytes());
        self.block.extend_from_slice(key);
        self.block.extend_from_slice(value);
        Ok(())
    }
}

/// The vars in a block.
#[derive(Debug, Clone, Copy)]
pub struct Vars<'b> {
    pub origin: Origin,
    pairs: &'b [u8],
}

impl<'b> Vars<'b> {
    /// `None`: it is no block.
    pub fn of(block: &'b [u8]) -> Option<Vars<'b>> {
        let (&[protocol, flags, high, low], pairs) = block.split_first_chunk()?;
        let protocol = match protocol {
            1 => Protocol::Uwsgi,
            2 => Protocol::Scgi,
            3 => Protocol::FastCgi,
            _ => return None,
        };
        let id = u16::from_be_bytes([high, low]);
        Some(Vars { origin: Origin { protocol, id, keep: flags & 1 != 0, mounted: flags & 2 != 0 }, pairs })
    }

    /// Keys and values, as they came.
    pub fn iter(&self) -> impl Iterator<Item = (&'b [u8], &'b [u8])> + use<'b> {
        let mut rest = self.pairs;
        std::iter::from_fn(move || {
            let (key, after) = rest.split_first_chunk()?;
            let (value, after) = after.split_first_chunk()?;
            let (key, after) = after.split_at_checked(u32::from_be_bytes(*key) as usize)?;
            let (value, after) = after.split_at_checked(u32::from_be_bytes(*value) as usize)?;
            rest = after;
            Some((key, value))
        })
    }

    /// Those that are no fields of the request: the front end's own.
    pub fn own(&self) -> impl Iterator<Item = (&'b [u8], &'b [u8])> + use<'b> {
        self.iter().filter(|(key, _)| !key.starts_with(FIELD))
    }

    /// The value of a var; of several the last, as a front end's files override one another. An empty one is none.
    pub fn get(&self, name: &[u8]) -> Option<&'b [u8]> {
        let value = self.iter().filter(|(key, _)| *key == name).last()?.1;
        Some(value).filter(|value| !value.is_empty())
    }

    /// The client of the front end, where its address is told.
    pub fn client(&self) -> Option<SocketAddr> {
        let text = |name| std::str::from_utf8(self.get(name)?).ok();
        let address: IpAddr = text(b"REMOTE_ADDR")?.parse().ok()?;
        Some(SocketAddr::new(address, text(b"REMOTE_PORT").and_then(|port| port.parse().ok()).unwrap_or(0)))
    }

    /// Whether that client asks by https.
    pub fn is_secure(&self) -> bool {
        let is = |name, word: &[u8]| self.get(name).is_some_and(|value| value.eq_ignore_ascii_case(word));
        is(b"HTTPS", b"on") || is(b"HTTPS", b"1") || is(b"REQUEST_SCHEME", b"https")
    }

    /// The name and the port by which the front end was asked. Without a name of its own it is the host of the request.
    pub fn server(&self) -> Option<(&'b [u8], &'b [u8])> {
        let port = self.get(b"SERVER_PORT")?;
        let host = || {
            let host = self.get(b"HTTP_HOST")?;
            let end = host.iter().rposition(|byte| *byte == b':').filter(|at| !host[*at..].contains(&b']'));
            Some(&host[..end.unwrap_or(host.len())])
        };
        Some((self.get(b"SERVER_NAME").or_else(host)?, port))
    }

    /// SCRIPT_NAME and PATH_INFO, decoded. The files that come with nginx have no PATH_INFO for FastCGI and SCGI: all of the path is
    /// SCRIPT_NAME, or DOCUMENT_URI.
    pub fn paths(&self) -> (&'b [u8], Cow<'b, [u8]>) {
        let script = self.get(b"SCRIPT_NAME");
        match (script, self.get(b"PATH_INFO")) {
            (script, Some(path)) => {
                let script = script.unwrap_or_default();
                // The slash is the path's: mod_proxy_uwsgi says it in both, of the root of what is mounted.
                let script = script.strip_suffix(b"/").unwrap_or(script);
                (script, path.strip_prefix(script).filter(|_| self.origin.mounted).unwrap_or(path).into())
            }
            (script, None) => match script.or(self.get(b"DOCUMENT_URI")) {
                Some(path) => (b"", path.into()),
                None => {
                    let target = self.get(b"REQUEST_URI").unwrap_or_default();
                    let mut path = Vec::new();
                    percent_decode(target.split(|byte| *byte == b'?').next().unwrap_or_default(), &mut path);
                    (b"", path.into())
                }
            },
        }
    }

    /// Appends the request's head as a client of HTTP/1 would have sent it.
    pub fn write_head(&self, out: &mut Vec<u8>) -> Result<(), Box<Refusal>> {
        let method = self.get(b"REQUEST_METHOD").ok_or_else(|| wrong("no REQUEST_METHOD"))?;
        let start = out.len();
        out.extend_from_slice(method);
        out.push(b' ');
        let target = out.len();
        match self.get(b"REQUEST_URI") {
            Some(uri) => out.extend_from_slice(uri),
            None => self.write_target(out),
        }
        // What would end the line, or move its parts. All else is for the rules of HTTP/1.
        let line = [&out[start..target - 1], &out[target..]];
        if line.iter().any(|part| part.iter().any(|byte| *byte <= b' ' || *byte == 0x7f)) {
            return Err(Refusal::from_bytes(RefusalKind::RequestLine, &out[start..]));
        }
        // Text of HTTP/2 is none of HTTP/1. Without a word of it, the request is the simplest there is.
        out.extend_from_slice(match self.get(b"SERVER_PROTOCOL") {
            None | Some(b"HTTP/1.0") => b" HTTP/1.0\r\n",
            Some(_) => b" HTTP/1.1\r\n",
        });
        for (key, value) in self.iter() {
            match key {
                b"CONTENT_TYPE" | b"CONTENT_LENGTH" if value.is_empty() => continue,
                b"CONTENT_TYPE" => out.extend_from_slice(b"content-type"),
                b"CONTENT_LENGTH" => out.extend_from_slice(b"content-length"),
                // How the body came to the front end, and what the two above say.
                b"HTTP_CONTENT_TYPE" | b"HTTP_CONTENT_LENGTH" | b"HTTP_TRANSFER_ENCODING" => continue,
                _ => match key.strip_prefix(FIELD) {
                    None => continue,
                    Some(name) if !is_token(name) => {
                        return Err(Refusal::from_bytes(RefusalKind::HeaderName, name));
                    }
                    Some(name) => out.extend(name.iter().map(|byte| match byte {
                        b'_' => b'-',
                        byte => byte.to_ascii_lowercase(),
                    })),
                },
            }
            if !is_field_value(value) {
                return Err(Refusal::from_bytes(RefusalKind::Header, key));
            }
            out.extend_from_slice(b": ");
            out.extend_from_slice(value);
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(b"\r\n");
        Ok(())
    }

    /// Without REQUEST_URI: what the path and the query make of it.
    fn write_target(&self, out: &mut Vec<u8>) {
        let (script, path) = self.paths();
        for byte in script.iter().chain(path.iter()) {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => out.push(*byte),
                byte => out.extend_from_slice(format!("%{byte:02X}").as_bytes()),
            }
        }
        if let Some(query) = self.get(b"QUERY_STRING") {
            out.push(b'?');
            out.extend_from_slice(query);
        }
    }
}

/// What names of fields begin with.
const FIELD: &[u8] = b"HTTP_";

#[cfg(test)]
mod tests {
    use super::*;

    fn block(origin: Origin, pairs: &[(&str, &str)]) -> Vec<u8> {
        let mut block = Vec::new();
        let mut writer = Writer::new(&mut block, origin);
        for (key, value) in pairs {
            writer.pair(key.as_bytes(), value.as_bytes()).expect("few");
        }
        block
    }

    fn head(pairs: &[(&str, &str)]) -> Result<String, u16> {
        let block = block(Origin::of(Protocol::Uwsgi), pairs);
        let mut out = Vec::new();
        let written = Vars::of(&block).expect("a block").write_head(&mut out);
        written.map(|()| String::from_utf8(out).expect("text")).map_err(|refusal| refusal.status())
    }

    fn paths(mounted: bool, pairs: &[(&str, &str)]) -> (String, String) {
        let origin = Origin { mounted, ..Origin::of(Protocol::Uwsgi) };
        let block = block(origin, pairs);
        let (script, path) = Vars::of(&block).expect("a block").paths();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
        (text(script), text(&path))
    }

    #[test]
    fn what_is_written_is_read() {
        for protocol in [Protocol::Uwsgi, Protocol::Scgi, Protocol::FastCgi] {
            for (keep, mounted) in [(true, false), (false, true)] {
                let origin = Origin { protocol, id: 513, keep, mounted };
                let block = block(origin, &[("A", "1"), ("B", "")]);
                let vars = Vars::of(&block).expect("a block");
                assert_eq!(vars.origin, origin);
                assert!(vars.iter().eq([(b"A".as_slice(), b"1".as_slice()), (b"B", b"")]));
            }
        }
        assert!(Vars::of(b"").is_none() && Vars::of(b"\x04\0\0\0").is_none());
    }

    #[test]
    fn the_head_is_what_the_client_has_sent() {
        let vars = [
            ("REQUEST_METHOD", "POST"),
            ("REQUEST_URI", "/a%20b?c=d"),
            ("SERVER_PROTOCOL", "HTTP/2.0"),
            ("CONTENT_TYPE", "text/plain"),
            ("CONTENT_LENGTH", "5"),
            ("HTTP_CONTENT_LENGTH", "5"),
            ("HTTP_TRANSFER_ENCODING", "chunked"),
            ("HTTP_HOST", "example.com"),
            ("HTTP_X_ONE", "1"),
            ("REMOTE_ADDR", "192.0.2.1"),
            ("wsgi.url_scheme", "https"),
            ("UWSGI_FILE", "/etc/passwd"),
        ];
        let text = "POST /a%20b?c=d HTTP/1.1\r\ncontent-type: text/plain\r\ncontent-length: 5\r\n\
            host: example.com\r\nx-one: 1\r\n\r\n";
        assert_eq!(head(&vars).as_deref(), Ok(text));
        let bare =
            [("REQUEST_METHOD", "GET"), ("PATH_INFO", "/a b/\u{e4}?"), ("QUERY_STRING", "c=d"), ("CONTENT_LENGTH", "")];
        assert_eq!(head(&bare).as_deref(), Ok("GET /a%20b/%C3%A4%3F?c=d HTTP/1.0\r\n\r\n"));
    }

    #[test]
    fn nothing_is_put_between_lines() {
        let with = |key, value| head(&[("REQUEST_METHOD", "GET"), ("REQUEST_URI", "/"), (key, value)]);
        for (key, value) in [
            ("REQUEST_URI", "/ HTTP/1.1\r\nX: y"),
            ("REQUEST_URI", "/a b"),
            ("REQUEST_METHOD", "GET /x"),
            ("HTTP_X", "a\r\nb: c"),
            ("HTTP_X", "a\0"),
            ("HTTP_X: y\r\nz", "a"),
            ("HTTP_", "a"),
            ("CONTENT_TYPE", "a\nb"),
            ("CONTENT_LENGTH", "5\r\ntransfer-encoding: chunked"),
        ] {
            assert_eq!(with(key, value), Err(400), "{key:?} {value:?}");
        }
        assert_eq!(head(&[("REQUEST_URI", "/")]), Err(400));
    }

    #[test]
    fn a_path_is_told_in_several_ways() {
        let pair = |script: &str, path: &str| (script.to_owned(), path.to_owned());
        assert_eq!(paths(false, &[("PATH_INFO", "/a/b")]), pair("", "/a/b"));
        assert_eq!(paths(false, &[("PATH_INFO", "/b"), ("SCRIPT_NAME", "/a")]), pair("/a", "/b"));
        assert_eq!(paths(true, &[("PATH_INFO", "/a/b"), ("SCRIPT_NAME", "/a")]), pair("/a", "/b"));
        assert_eq!(paths(true, &[("PATH_INFO", "/c"), ("SCRIPT_NAME", "/a")]), pair("/a", "/c"));
        assert_eq!(paths(true, &[("PATH_INFO", "/a/b"), ("SCRIPT_NAME", "/a/")]), pair("/a", "/b"));
        assert_eq!(paths(false, &[("PATH_INFO", "/"), ("SCRIPT_NAME", "/a/")]), pair("/a", "/"));
        assert_eq!(paths(false, &[("PATH_INFO", "/"), ("SCRIPT_NAME", "/")]), pair("", "/"));
        assert_eq!(paths(false, &[("SCRIPT_NAME", "/a/b"), ("DOCUMENT_URI", "/c")]), pair("", "/a/b"));
        assert_eq!(paths(false, &[("DOCUMENT_URI", "/a")]), pair("", "/a"));
        assert_eq!(paths(false, &[("REQUEST_URI", "/a%20b?c")]), pair("", "/a b"));
        // A file of nginx, and the operator's line behind it.
        let overridden = [("SCRIPT_NAME", "/a"), ("PATH_INFO", "/a"), ("SCRIPT_NAME", "")];
        assert_eq!(paths(false, &overridden), pair("", "/a"));
    }

    #[test]
    fn the_client_and_its_scheme_are_told() {
        let of = |pairs: &[(&str, &str)]| {
            let block = block(Origin::of(Protocol::Scgi), pairs);
            let vars = Vars::of(&block).expect("a block");
            (vars.client().map(|client| client.to_string()), vars.is_secure())
        };
        let both = [("REMOTE_ADDR", "::1"), ("REMOTE_PORT", "80"), ("HTTPS", "on")];
        assert_eq!(of(&both), (Some("[::1]:80".into()), true));
        assert_eq!(
            of(&[("REMOTE_ADDR", "192.0.2.1"), ("REQUEST_SCHEME", "https")]),
            (Some("192.0.2.1:0".into()), true)
        );
        assert_eq!(of(&[("REMOTE_ADDR", "unix:"), ("HTTPS", "off"), ("REQUEST_SCHEME", "http")]), (None, false));
    }

    #[test]
    fn a_server_has_a_name() {
        let of = |pairs: &[(&str, &str)]| {
            let block = block(Origin::of(Protocol::Scgi), pairs);
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            Vars::of(&block).expect("a block").server().map(|(name, port)| (text(name), text(port)))
        };
        let pair = |name: &str| Some((name.to_owned(), "80".to_owned()));
        assert_eq!(of(&[("SERVER_NAME", "a"), ("SERVER_PORT", "80"), ("HTTP_HOST", "b")]), pair("a"));
        assert_eq!(of(&[("SERVER_NAME", ""), ("SERVER_PORT", "80"), ("HTTP_HOST", "b:81")]), pair("b"));
        assert_eq!(of(&[("SERVER_PORT", "80"), ("HTTP_HOST", "[::1]")]), pair("[::1]"));
        assert_eq!((of(&[("SERVER_PORT", "80")]), of(&[("SERVER_NAME", "a")])), (None, None));
    }

    #[test]
    fn there_are_not_too_many() {
        let mut block = Vec::new();
        let mut writer = Writer::new(&mut block, Origin::of(Protocol::Uwsgi));
        assert!(writer.pair(b"", b"a").is_err());
        let mut writer = Writer::new(&mut block, Origin::of(Protocol::Uwsgi));
        for _ in 0..MAX_VARS {
            writer.pair(b"a", b"").expect("as many as there may be");
        }
        assert!(writer.pair(b"a", b"").is_err());
    }
}
