//! A request as it goes over the wire, made before it is sent.
use std::sync::Arc;
use tricorn_proto::message::Method;

use crate::plan::Plan;

/// A request. Its parts are shared by the threads.
#[derive(Clone)]
pub struct Prepared {
    /// Which of the addresses it goes to.
    pub origin: u32,
    /// What ends the response depends on it.
    pub method: Method,
    /// It may be sent a second time (RFC 9110 section 9.2.2).
    pub is_idempotent: bool,
    /// All that is sent over HTTP/1.1, but for a body that is too long to be copied. Empty for HTTP/2.
    pub head: Arc<[u8]>,
    /// Names and values that are sent over HTTP/2, from `:method` on. Empty for HTTP/1.1.
    pub fields: Arc<[(Vec<u8>, Vec<u8>)]>,
    pub body: Arc<[u8]>,
    pub line: Arc<Line>,
}

/// What a request is made of, so that a redirected one can be made of it.
pub struct Line {
    pub method: String,
    pub host: String,
    pub path: String,
}

/// What all requests have in common.
pub struct Template {
    fields: Vec<(String, String)>,
    /// The value of a field Host that was given.
    host: Option<String>,
    version: Version,
    body: Arc<[u8]>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    Http1 { keeps_alive: bool },
    Http2,
}

impl Prepared {
    /// Whether its response may have content.
    pub fn has_content(&self) -> bool {
        self.method != Method::Head
    }

    #[cfg(test)]
    pub fn of_fields(fields: Vec<(Vec<u8>, Vec<u8>)>, body: Vec<u8>, method: Method) -> Prepared {
        let line = Line { method: String::new(), host: String::new(), path: String::new() };
        let (head, fields, body) = (Arc::default(), fields.into(), body.into());
        Prepared { origin: 0, method, is_idempotent: true, head, fields, body, line: line.into() }
    }
}

impl Template {
    /// # Errors
    /// A sentence: a header that cannot be sent.
    pub fn new(plan: &Plan, body: Arc<[u8]>) -> Result<Template, String> {
        let version = match plan.http2 {
            Some(_) => Version::Http2,
            None => Version::Http1 { keeps_alive: plan.connection.keep_alive },
        };
        for (name, value) in &plan.request.headers {
            check_field(name, value)?;
            // RFC 9113 section 8.2.2.
            if version == Version::Http2 && OF_CONNECTION.iter().any(|one| name.eq_ignore_ascii_case(one)) {
                return Err(format!("the header {name} is about a connection of HTTP/1: HTTP/2 does not allow it"));
            }
        }
        let host = plan.request.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("host"));
        Ok(Template { fields: plan.request.headers.clone(), host: host.map(|(_, value)| value.clone()), version, body })
    }

    /// # Errors
    /// A sentence: something cannot be part of a request.
    pub fn prepare(&self, origin: u32, line: Line, scheme: &str) -> Result<Prepared, String> {
        let Line { method, host, path } = &line;
        if method.is_empty() || !method.bytes().all(is_token) {
            return Err(format!("method: expected a word such as GET, got {method:?}"));
        }
        if path.is_empty() || path.bytes().any(|byte| byte <= b' ' || byte == 0x7f) {
            return Err(format!(
                "{path:?} cannot be the target of a request: spaces and control characters are encoded"
            ));
        }
        check_field("Host", host)?;
        let wants_length = !self.body.is_empty() || matches!(method.as_str(), "POST" | "PUT" | "PATCH");
        let length = wants_length.then_some(self.body.len());
        let (mut head, mut fields, mut body) = (Vec::new(), Vec::new(), Arc::clone(&self.body));
        match self.version {
            Version::Http1 { keeps_alive } => {
                head = self.head(&line, length, keeps_alive).into_bytes();
                if self.body.len() <= COPIED {
                    head.extend_from_slice(&self.body);
                    body = Arc::default();
                }
            }
            Version::Http2 => fields = self.fields(&line, length, scheme),
        }
        Ok(Prepared {
            origin,
            method: if method == "HEAD" { Method::Head } else { Method::Get },
            is_idempotent: !matches!(method.as_str(), "POST" | "PATCH" | "CONNECT"),
            head: head.into(),
            fields: fields.into(),
            body,
            line: line.into(),
        })
    }

    fn head(&self, Line { method, host, path }: &Line, length: Option<usize>, keeps_alive: bool) -> String {
        let mut head = format!("{method} {path} HTTP/1.1\r\n");
        if self.host.is_none() {
            head += &format!("Host: {host}\r\n");
        }
        self.fields.iter().for_each(|(name, value)| head += &format!("{name}: {value}\r\n"));
        if !keeps_alive {
            head += "Connection: close\r\n";
        }
        if let Some(length) = length {
            head += &format!("Content-Length: {length}\r\n");
        }
        head + "\r\n"
    }

    /// RFC 9113 section 8.3.1: `:authority` takes the place of Host.
    fn fields(
        &self,
        Line { method, host, path }: &Line,
        length: Option<usize>,
        scheme: &str,
    ) -> Vec<(Vec<u8>, Vec<u8>)> {
        let field = |name: &str, value: &str| (name.to_ascii_lowercase().into_bytes(), value.as_bytes().to_vec());
        let mut fields = vec![
            field(":method", method),
            field(":scheme", scheme),
            field(":authority", self.host.as_ref().unwrap_or(host)),
            field(":path", path),
        ];
        let others = self.fields.iter().filter(|(name, _)| !name.eq_ignore_ascii_case("host"));
        fields.extend(others.map(|(name, value)| field(name, value)));
        fields.extend(length.map(|length| field("content-length", &length.to_string())));
        fields
    }
}

fn check_field(name: &str, value: &str) -> Result<(), String> {
    let is_value = value.bytes().all(|byte| byte == b'\t' || (byte >= b' ' && byte != 0x7f));
    if name.is_empty() || !name.bytes().all(is_token) || !is_value {
        return Err(format!("{name:?}: {value:?} cannot be a header field"));
    }
    Ok(())
}

/// RFC 9110 section 5.6.2.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Most bytes of a body that go into the buffer of the head, so that one system call sends both.
const COPIED: usize = 64 * 1024;
/// Fields that HTTP/2 has no use for, since they are about a connection of HTTP/1.
const OF_CONNECTION: [&str; 5] = ["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"];

#[cfg(test)]
mod tests {
    use super::*;

    fn prepared(plan: &str, method: &str, path: &str) -> Result<String, String> {
        let plan = Plan::from_json(plan.as_bytes()).unwrap();
        let template = Template::new(&plan, plan.request.body.clone().into())?;
        let made = template.prepare(0, Line { method: method.into(), host: "h".into(), path: path.into() }, "http")?;
        if made.head.is_empty() {
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
            let lines = made.fields.iter().map(|(name, value)| format!("{} {}\n", text(name), text(value)));
            return Ok(lines.collect());
        }
        Ok(String::from_utf8(made.head.to_vec()).unwrap())
    }

    fn plan(more: &str) -> String {
        let target = r#"{"address": {"tcp": ["h", 1]}, "host": "h", "path": "/"}"#;
        let model = r#"{"closed": {"connections": 1}}"#;
        format!("{{\"targets\": [{target}], \"model\": {model}, \"bounds\": {{\"requests\": 1}}{more}}}")
    }

    #[test]
    fn requests_on_the_wire() {
        assert_eq!(prepared(&plan(""), "GET", "/a?b").unwrap(), "GET /a?b HTTP/1.1\r\nHost: h\r\n\r\n");
        assert_eq!(prepared(&plan(""), "PUT", "/").unwrap(), "PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n");
        let more =
            plan(r#", "request": {"headers": [["hoST", "x"]], "body": "YWI="}, "connection": {"keep_alive": false}"#);
        let head = "POST / HTTP/1.1\r\nhoST: x\r\nConnection: close\r\nContent-Length: 2\r\n\r\nab";
        assert_eq!(prepared(&more, "POST", "/").unwrap(), head);
    }

    #[test]
    fn requests_as_fields_of_http2() {
        let http2 = r#", "http2": {"streams": 1}"#;
        let get = prepared(&plan(http2), "GET", "/a?b").unwrap();
        assert_eq!(get, ":method GET\n:scheme http\n:authority h\n:path /a?b\n");
        let more = format!(r#"{http2}, "request": {{"headers": [["hoST", "x"], ["X-A", "B"]], "body": "YWI="}}"#);
        let post = prepared(&plan(&more), "POST", "/").unwrap();
        let fields = ":method POST\n:scheme http\n:authority x\n:path /\nx-a B\ncontent-length 2\n";
        assert_eq!(post, fields);
    }

    #[test]
    fn fields_of_a_connection_cannot_be_sent_over_http2() {
        let more = r#", "http2": {"streams": 1}, "request": {"headers": [["Connection", "x"]]}"#;
        let error = prepared(&plan(more), "GET", "/").unwrap_err();
        assert_eq!(error, "the header Connection is about a connection of HTTP/1: HTTP/2 does not allow it");
    }

    #[test]
    fn what_would_end_a_line_is_refused() {
        prepared(&plan(""), "GET", "/a b").unwrap_err();
        prepared(&plan(""), "GE T", "/").unwrap_err();
        let more = plan(r#", "request": {"headers": [["A", "b\r\nC: d"]]}"#);
        prepared(&more, "GET", "/").unwrap_err();
    }
}
