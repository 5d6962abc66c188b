//! Whether a response is compressed: what its fields, and those of its request, say of that.
//!
//! ```text
//!   Policy (the operator) ────────────────────────┐
//!   Asked: Accept-Encoding, If-None-Match, Cookie ┼──▶ decide ──▶ Treatment ──▶ Reply::treat
//!   Said: status, fields, length ─────────────────┘
//! ```
//!
//! Compression tells a secret by the length of a response that repeats what the client has sent beside it (BREACH). It takes requests with
//! the victim's credentials, so that responses to those are left alone unless everyone may see them.
use crate::message::coding::{Accepted, Choice, Coding};
use crate::message::grammar::{is_named, is_token, list, trim_ows};
use crate::message::{FieldList, Method, RequestHead};

/// Bodies that are known to be shorter are sent as they are: with its head one fits into a packet of TCP or two, compressed or not.
pub const MIN_LENGTH: u64 = 1024;

/// What the operator wants to be compressed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy {
    /// In order of preference.
    pub codings: Vec<Coding>,
    pub types: Vec<MediaRange>,
    /// Responses with or to credentials, too.
    pub private: bool,
}

/// Media types: one (`text/html`), all of a kind (`text/*`), or all with a structure (`*+json`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MediaRange {
    text: String,
    form: Form,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Exact,
    Prefix,
    Suffix,
}

/// What becomes of one response.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Treatment {
    pub coding: Option<Coding>,
    /// It depends on Accept-Encoding, and says so.
    pub varies: bool,
    /// Its entity tag is that of a form which the server has made.
    pub weakens: bool,
}

impl Treatment {
    /// The same without a coding, for want of a compressor.
    #[must_use]
    pub fn uncoded(self) -> Treatment {
        Treatment { varies: self.varies, ..Treatment::default() }
    }
}

/// The request that is answered.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    pub head: &'a RequestHead,
    /// What the head's spans point into.
    pub bytes: &'a [u8],
}

/// The response, whose head was not sent.
#[derive(Debug, Clone, Copy)]
pub struct Said<'a> {
    pub status: u16,
    /// The application's fields.
    pub fields: &'a FieldList,
    /// Fields that it gets besides, but for those of which the application has its own.
    pub standing: &'a FieldList,
    pub length: Length,
}

/// How long the body is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// It ends when the application ends it.
    Open,
    Known(u64),
    /// The response to a HEAD request without Content-Length and without a body.
    Untold,
}

impl MediaRange {
    /// `None`: it is none.
    pub fn parse(text: &str) -> Option<MediaRange> {
        let is_name = |name: &str| is_token(name.as_bytes()) && !name.contains('*');
        let text = text.to_ascii_lowercase();
        let (text, form) = match text.split_once('/') {
            None => {
                text.strip_prefix("*+").filter(|structure| is_name(structure))?;
                (text.strip_prefix('*')?, Form::Suffix)
            }
            Some((kind, "*")) if is_name(kind) => (text.strip_suffix('*')?, Form::Prefix),
            Some((kind, subtype)) if is_name(kind) && is_name(subtype) => (text.as_str(), Form::Exact),
            Some(_) => return None,
        };
        Some(MediaRange { text: text.to_owned(), form })
    }

    fn has(&self, kind: &[u8]) -> bool {
        let text = self.text.as_bytes();
        let part = match self.form {
            Form::Exact => Some(kind),
            Form::Prefix => kind.get(..text.len()),
            Form::Suffix => kind.len().checked_sub(text.len()).and_then(|at| kind.get(at..)),
        };
        part.is_some_and(|part| part.eq_ignore_ascii_case(text))
    }
}

impl Policy {
    /// What becomes of this response.
    pub fn decide(&self, asked: Asked<'_>, said: Said<'_>) -> Treatment {
        let Said { status, length, .. } = said;
        let said = Found::of(said.fields, said.standing);
        if matches!(status, ..200 | 204 | 205) || matches!(asked.head.kind, Method::Connect | Method::Tunnel) {
            return Treatment::default();
        }
        let is_listed = match said.kind {
            Some(kind) => self.lists(kind),
            // It need not repeat the type of what the client has (RFC 9110 section 15.4.5).
            None => status == 304,
        };
        if !is_listed || said.is_fixed || matches!(length, Length::Known(..MIN_LENGTH)) && status != 304 {
            return Treatment::default();
        }
        let varies = Treatment { varies: true, ..Treatment::default() };
        if status == 304 {
            return Treatment { weakens: said.etag.is_some_and(|etag| asked.has_weak(etag)), ..varies };
        }
        if said.is_part || length == Length::Untold || self.is_secret(asked, &said) {
            return varies;
        }
        match asked.accepted().choose(&self.codings) {
            Choice::Coded(coding) => Treatment { coding: Some(coding), varies: true, weakens: true },
            Choice::Identity | Choice::Nothing => varies,
        }
    }

    /// Whether it is a type that is compressed. Messages of gRPC and Connect streams have a compression of their own.
    fn lists(&self, kind: &[u8]) -> bool {
        let media = trim_ows(kind.split(|&byte| byte == b';').next().unwrap_or_default());
        let is_enveloped = ["application/grpc", "application/connect+"]
            .iter()
            .any(|prefix| media.get(..prefix.len()).is_some_and(|part| part.eq_ignore_ascii_case(prefix.as_bytes())));
        !is_enveloped && self.types.iter().any(|range| range.has(media))
    }

    /// Whether the length of what is compressed may tell a secret.
    fn is_secret(&self, asked: Asked<'_>, said: &Found<'_>) -> bool {
        !self.private && !said.is_public && (said.sets_cookie || asked.has_credentials())
    }
}

impl Asked<'_> {
    fn accepted(&self) -> Accepted {
        Accepted::of(self.named(b"accept-encoding"))
    }

    fn has_credentials(&self) -> bool {
        self.named(b"cookie").next().is_some() || self.named(b"authorization").next().is_some()
    }

    /// Whether the client has the weak form of this entity tag.
    fn has_weak(&self, etag: &[u8]) -> bool {
        self.named(b"if-none-match").flat_map(list).any(|tag| tag.strip_prefix(b"W/") == Some(etag))
    }

    fn named<const N: usize>(&self, name: &'static [u8; N]) -> impl Iterator<Item = &[u8]> {
        let fields = self.head.fields.iter().filter(|field| is_named(field.name.of(self.bytes), name));
        fields.map(|field| field.value.of(self.bytes))
    }
}

/// What the fields of a response say.
#[derive(Default)]
struct Found<'a> {
    kind: Option<&'a [u8]>,
    etag: Option<&'a [u8]>,
    /// Its bytes are what they are: encoded already, digested, or not to be transformed.
    is_fixed: bool,
    /// It is a range of something.
    is_part: bool,
    is_public: bool,
    sets_cookie: bool,
}

impl<'a> Found<'a> {
    /// By length first, as [`classify`](super::app_field::classify).
    fn of(fields: &'a FieldList, standing: &'a FieldList) -> Found<'a> {
        let mut said = Found::default();
        let own = |(name, _): &(&[u8], &[u8])| fields.last(name).is_none();
        for (name, value) in fields.iter().chain(standing.iter().filter(own)) {
            match name.len() {
                4 if is_named(name, b"etag") => said.etag = Some(value),
                6 => said.is_fixed |= is_named(name, b"digest"),
                10 => said.sets_cookie |= is_named(name, b"set-cookie"),
                11 => said.is_fixed |= is_named(name, b"repr-digest") || is_named(name, b"content-md5"),
                12 if is_named(name, b"content-type") => said.kind = Some(value),
                13 if is_named(name, b"content-range") => said.is_part = true,
                13 if is_named(name, b"cache-control") => {
                    said.is_fixed |= list(value).any(|word| word.eq_ignore_ascii_case(b"no-transform"));
                    said.is_public |= list(value).any(|word| word.eq_ignore_ascii_case(b"public"));
                }
                14 => said.is_fixed |= is_named(name, b"content-digest"),
                16 => said.is_fixed |= is_named(name, b"content-encoding"),
                _ => {}
            }
        }
        said
    }
}

#[cfg(test)]
mod tests {
    use super::super::Reply;
    use super::*;
    use crate::message::{Field, Span, Version};

    const TYPES: [&str; 4] = ["text/*", "application/json", "*+json", "*+xml"];

    fn policy() -> Policy {
        Policy {
            codings: Coding::ALL.to_vec(),
            types: TYPES.into_iter().map(|text| MediaRange::parse(text).expect("one")).collect(),
            private: false,
        }
    }

    /// What becomes of a response with these fields, of this length, to a request with those.
    fn treated(
        policy: &Policy,
        method: Method,
        asked: &[(&str, &str)],
        status: u16,
        said: &[(&str, &str)],
        length: Length,
    ) -> Treatment {
        let (mut head, mut bytes) = (RequestHead { kind: method, ..RequestHead::default() }, Vec::new());
        for (name, value) in asked {
            let mut span = |text: &str| {
                bytes.extend_from_slice(text.as_bytes());
                Span { start: (bytes.len() - text.len()) as u32, end: bytes.len() as u32 }
            };
            head.fields.push(Field { name: span(name), value: span(value), ..Field::default() });
        }
        let mut reply = Reply::default();
        reply.begin(method, Version::Http11, true);
        reply.status(format!("{status} Status").as_bytes()).expect("a status");
        for (name, value) in said {
            reply.field(name.as_bytes(), value.as_bytes()).expect("a field");
        }
        let standing = FieldList::new();
        policy.decide(
            Asked { head: &head, bytes: &bytes },
            Said { status, fields: reply.fields(), standing: &standing, length },
        )
    }

    /// The same of a GET request for 2 KiB of text.
    fn of(asked: &[(&str, &str)], said: &[(&str, &str)]) -> Treatment {
        let said = [&[("Content-Type", "text/html; charset=utf-8")], said].concat();
        treated(
            &policy(),
            Method::Get,
            &[&[("Accept-Encoding", "gzip")], asked].concat(),
            200,
            &said,
            Length::Known(2048),
        )
    }

    const LEFT_ALONE: Treatment = Treatment { coding: None, varies: false, weakens: false };
    const VARIES: Treatment = Treatment { coding: None, varies: true, weakens: false };
    const CODED: Treatment = Treatment { coding: Some(Coding::Gzip), varies: true, weakens: true };

    #[test]
    fn the_coding_is_that_of_accept_encoding() {
        let of = |asked: &[(&str, &str)]| {
            treated(&policy(), Method::Get, asked, 200, &[("content-type", "text/css")], Length::Open)
        };
        assert_eq!(of(&[("accept-encoding", "gzip, br")]).coding, Some(Coding::Brotli));
        assert_eq!(of(&[("Accept-Encoding", "br;q=0.1"), ("ACCEPT-ENCODING", "gzip")]).coding, Some(Coding::Gzip));
        for none in
            [&[][..], &[("accept-encoding", "")], &[("accept-encoding", "deflate")], &[("accept-encoding", "*;q=0")]]
        {
            assert_eq!(of(none), VARIES, "{none:?}");
        }
    }

    #[test]
    fn types_are_listed() {
        let of = |kind: &str| {
            let asked = [("accept-encoding", "gzip")];
            treated(&policy(), Method::Get, &asked, 200, &[("content-type", kind)], Length::Open)
        };
        for listed in [
            "text/html",
            "TEXT/Event-Stream;x=y",
            "application/json",
            "application/problem+JSON ; a=b",
            "image/svg+xml",
        ] {
            assert_eq!(of(listed), CODED, "{listed}");
        }
        let enveloped =
            ["application/grpc", "application/grpc-web+json", "application/grpc+json", "application/connect+json"];
        for other in
            ["image/png", "application/octet-stream", "application/jsonp", "texthtml", "", "multipart/byteranges"]
                .into_iter()
                .chain(enveloped)
        {
            assert_eq!(of(other), LEFT_ALONE, "{other}");
        }
        let without = treated(&policy(), Method::Get, &[("accept-encoding", "gzip")], 200, &[], Length::Open);
        assert_eq!(without, LEFT_ALONE);
    }

    #[test]
    fn ranges_of_media_types_are_names_prefixes_and_suffixes() {
        for bad in [
            "",
            "text",
            "*",
            "*/*",
            "text/",
            "/html",
            "te xt/html",
            "text/*x",
            "text/x/y",
            "*json",
            "*+",
            "*+*",
            "text/html;a=b",
        ] {
            assert_eq!(MediaRange::parse(bad), None, "{bad}");
        }
        assert_eq!(MediaRange::parse("Text/HTML"), MediaRange::parse("text/html"));
    }

    #[test]
    fn only_what_is_long_enough_is_compressed() {
        let of = |length| {
            let asked = [("accept-encoding", "gzip")];
            treated(&policy(), Method::Get, &asked, 200, &[("content-type", "text/css")], length)
        };
        assert_eq!(of(Length::Known(MIN_LENGTH - 1)), LEFT_ALONE);
        assert_eq!(of(Length::Known(0)), LEFT_ALONE);
        assert_eq!((of(Length::Known(MIN_LENGTH)), of(Length::Open)), (CODED, CODED));
        assert_eq!(of(Length::Untold), VARIES);
    }

    #[test]
    fn responses_without_content_and_tunnels_are_left_alone() {
        let asked = [("accept-encoding", "gzip")];
        let said = [("content-type", "text/css")];
        for status in [101, 204, 205] {
            assert_eq!(treated(&policy(), Method::Get, &asked, status, &said, Length::Open), LEFT_ALONE, "{status}");
        }
        for method in [Method::Connect, Method::Tunnel] {
            assert_eq!(treated(&policy(), method, &asked, 200, &said, Length::Open), LEFT_ALONE, "{method:?}");
        }
        for (method, status) in [(Method::Other, 200), (Method::Head, 200), (Method::Get, 404), (Method::Get, 500)] {
            assert_eq!(treated(&policy(), method, &asked, status, &said, Length::Open), CODED, "{method:?} {status}");
        }
    }

    #[test]
    fn bytes_that_are_what_they_are_stay_so() {
        for said in [
            ("Content-Encoding", "br"),
            ("content-encoding", "identity"),
            ("Cache-Control", "private, No-Transform"),
            ("Content-Digest", "sha-256=:x:"),
            ("Repr-Digest", "sha-256=:x:"),
            ("Digest", "x"),
            ("Content-MD5", "x"),
        ] {
            assert_eq!(of(&[], &[said]), LEFT_ALONE, "{said:?}");
        }
        assert_eq!(of(&[], &[("Content-Range", "bytes 0-99/200")]), VARIES);
        assert_eq!(of(&[("Range", "bytes=0-99")], &[]), CODED, "the application has answered with all of it");
    }

    /// BREACH.
    #[test]
    fn what_may_have_a_secret_is_not_compressed_unless_all_may_see_it() {
        for asked in [("Cookie", "a=b"), ("COOKIE", ""), ("Authorization", "Basic x")] {
            assert_eq!(of(&[asked], &[]), VARIES, "{asked:?}");
            assert_eq!(of(&[asked], &[("cache-control", "max-age=60, Public")]), CODED, "{asked:?}");
        }
        assert_eq!(of(&[], &[("Set-Cookie", "a=b")]), VARIES);
        assert_eq!(of(&[("Cookie", "a=b")], &[("cache-control", "x-public")]), VARIES);
        let private = Policy { private: true, ..policy() };
        let (asked, said) =
            ([("accept-encoding", "gzip"), ("cookie", "a=b")], [("content-type", "text/css"), ("set-cookie", "a=b")]);
        assert_eq!(treated(&private, Method::Get, &asked, 200, &said, Length::Open), CODED);
    }

    /// RFC 9110 section 15.4.5: a 304 has the ETag and the Vary that the 200 would have had.
    #[test]
    fn an_answer_without_the_content_has_the_tag_that_the_client_has() {
        let of = |tags: &str, said: &[(&str, &str)]| {
            let asked = [("accept-encoding", "gzip"), ("if-none-match", tags)];
            treated(&policy(), Method::Get, &asked, 304, said, Length::Known(0))
        };
        let weakens = Treatment { weakens: true, ..VARIES };
        assert_eq!(of("W/\"b\", W/\"a\"", &[("etag", "\"a\"")]), weakens);
        assert_eq!(of("W/\"a\"", &[("etag", "\"a\""), ("content-type", "text/html")]), weakens);
        assert_eq!(of("\"a\"", &[("etag", "\"a\"")]), VARIES);
        assert_eq!(of("W/\"a\"", &[("etag", "W/\"a\"")]), VARIES, "it is weak already");
        assert_eq!(of("W/\"a\"", &[("etag", "\"a\""), ("content-type", "image/png")]), LEFT_ALONE);
        assert_eq!(of("*", &[("etag", "\"a\"")]), VARIES);
    }

    #[test]
    fn standing_fields_count_unless_the_application_has_its_own() {
        let mut reply = Reply::default();
        reply.begin(Method::Get, Version::Http11, true);
        reply.status(b"200 OK").expect("a status");
        reply.field(b"Content-Type", b"text/html").expect("a field");
        let head = RequestHead::default();
        let standing: FieldList = [(&b"cache-control"[..], &b"no-transform"[..])].into_iter().collect();
        let asked = Asked { head: &head, bytes: b"" };
        assert_eq!(
            policy()
                .decide(asked, Said { status: 200, fields: reply.fields(), standing: &standing, length: Length::Open }),
            LEFT_ALONE
        );
        reply.field(b"Cache-Control", b"no-store").expect("a field");
        assert_eq!(
            policy()
                .decide(asked, Said { status: 200, fields: reply.fields(), standing: &standing, length: Length::Open }),
            VARIES
        );
    }

    /// The fields of a reply, as they are sent.
    fn fields(said: &[(&str, &str)], treatment: Treatment, standing: &[(&str, &str)]) -> Vec<(String, String)> {
        let standing: FieldList = standing.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect();
        let mut reply = Reply::default();
        reply.begin(Method::Get, Version::Http11, true);
        reply.status(b"200 OK").expect("a status");
        for (name, value) in said {
            reply.field(name.as_bytes(), value.as_bytes()).expect("a field");
        }
        reply.treat(treatment, &standing);
        let inputs = super::super::HeadInputs { standing: &standing, ..Default::default() };
        let head = reply.head(&inputs).expect("a head");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        head.fields().chain(head.standing()).map(|(name, value)| (text(name), text(value))).collect()
    }

    fn pairs(fields: &[(&str, &str)]) -> Vec<(String, String)> {
        fields.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
    }

    #[test]
    fn a_compressed_response_says_so() {
        let said = [
            ("Content-Length", "2048"),
            ("ETag", "\"a\""),
            ("Accept-Ranges", "bytes"),
            ("Content-Type", "text/html"),
            ("X-A", "1"),
        ];
        let expected = [
            ("ETag", "W/\"a\""),
            ("Content-Type", "text/html"),
            ("X-A", "1"),
            ("Content-Encoding", "gzip"),
            ("Vary", "Accept-Encoding"),
        ];
        assert_eq!(fields(&said, CODED, &[]), pairs(&expected));
        assert_eq!(fields(&[("etag", "W/\"a\"")], CODED, &[])[0].1, "W/\"a\"");
    }

    #[test]
    fn one_that_is_not_compressed_for_this_client_says_that_it_varies_and_nothing_else() {
        let said = [("Accept-Ranges", "bytes"), ("Content-Length", "2048"), ("ETag", "\"a\"")];
        assert_eq!(fields(&said, VARIES, &[]), pairs(&[&said[..], &[("Vary", "Accept-Encoding")]].concat()));
        assert_eq!(fields(&said, LEFT_ALONE, &[]), pairs(&said));
    }

    #[test]
    fn vary_has_the_name_once() {
        for same in ["Accept-Encoding", "cookie, ACCEPT-encoding", "*"] {
            assert_eq!(fields(&[("vary", same)], VARIES, &[]), pairs(&[("vary", same)]));
        }
        assert_eq!(fields(&[("Vary", "Cookie")], VARIES, &[]), pairs(&[("Vary", "Cookie, Accept-Encoding")]));
        let two = [("Vary", "Cookie"), ("vary", "Origin")];
        assert_eq!(fields(&two, VARIES, &[]), pairs(&[("Vary", "Cookie"), ("vary", "Origin, Accept-Encoding")]));
        assert_eq!(fields(&[], VARIES, &[("Vary", "Origin")]), pairs(&[("Vary", "Origin, Accept-Encoding")]));
        assert_eq!(fields(&[], VARIES, &[("Vary", "*")]), pairs(&[("Vary", "*")]));
    }
}
