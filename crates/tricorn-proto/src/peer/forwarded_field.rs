//! The field `Forwarded` (RFC 7239 section 4), to the letter.
//!
//! ```text
//!   Forwarded         = 1#forwarded-element
//!   forwarded-element = [ forwarded-pair ] *( ";" [ forwarded-pair ] )
//!   forwarded-pair    = token "=" ( token / quoted-string )
//! ```
use super::node::Node;
use crate::message::grammar::{QDTEXT, TCHAR, is, trim_ows};

/// What one hop says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Element {
    pub client: Option<Node>,
    pub host: Option<Vec<u8>>,
    pub proto: Option<Vec<u8>>,
    has_by: bool,
}

/// Adds the elements of one field's value; `None` if it breaks the grammar. Empty elements of the list count for nothing
/// (RFC 9110 section 5.6.1.2).
pub(super) fn parse(value: &[u8], elements: &mut Vec<Element>) -> Option<()> {
    let mut rest = trim_ows(value);
    loop {
        let mut element = Element::default();
        let mut is_empty = true;
        loop {
            if rest.first().is_some_and(|byte| is(*byte, TCHAR)) {
                rest = pair(rest, &mut element)?;
                is_empty = false;
            }
            match rest.strip_prefix(b";") {
                Some(after) => (rest, is_empty) = (after, false),
                None => break,
            }
        }
        if !is_empty {
            elements.push(element);
        }
        rest = trim_ows(rest);
        match rest.split_first() {
            None => return Some(()),
            Some((b',', after)) => rest = trim_ows(after),
            Some(_) => return None,
        }
    }
}

/// One pair; what follows it. "each parameter MUST NOT occur more than once per field-value" of an element (section 4).
fn pair<'a>(text: &'a [u8], element: &mut Element) -> Option<&'a [u8]> {
    let (name, rest) = token(text)?;
    let (value, rest) = value(rest.strip_prefix(b"=")?)?;
    let is_new = if name.eq_ignore_ascii_case(b"for") {
        element.client.replace(Node::strict(&value)?).is_none()
    } else if name.eq_ignore_ascii_case(b"by") {
        Node::strict(&value)?;
        !std::mem::replace(&mut element.has_by, true)
    } else if name.eq_ignore_ascii_case(b"host") {
        element.host.replace(value).is_none()
    } else if name.eq_ignore_ascii_case(b"proto") {
        element.proto.replace(value).is_none()
    } else {
        true // an extension (section 5.5)
    };
    is_new.then_some(rest)
}

fn token(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = text.iter().position(|byte| !is(*byte, TCHAR)).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

/// A token, or a quoted-string without its quotes and backslashes.
fn value(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let Some(mut rest) = text.strip_prefix(b"\"") else {
        return token(text).map(|(value, rest)| (value.to_vec(), rest));
    };
    let mut value = Vec::new();
    loop {
        match rest {
            [b'"', after @ ..] => return Some((value, after)),
            // quoted-pair = "\" ( HTAB / SP / VCHAR / obs-text ): a field value has no other bytes.
            [b'\\', byte, after @ ..] => {
                value.push(*byte);
                rest = after;
            }
            [byte, after @ ..] if is(*byte, QDTEXT) => {
                value.push(*byte);
                rest = after;
            }
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(value: &str) -> Option<Vec<Element>> {
        let mut elements = Vec::new();
        parse(value.as_bytes(), &mut elements).map(|()| elements)
    }

    fn clients(value: &str) -> Option<Vec<String>> {
        let name = |each: Element| each.client.map_or("-".into(), |node| node.name);
        parsed(value).map(|elements| elements.into_iter().map(name).collect())
    }

    #[test]
    fn the_examples_of_the_rfc() {
        assert_eq!(clients("for=\"_gazonk\"").unwrap(), ["_gazonk"]);
        assert_eq!(clients("For=\"[2001:db8:cafe::17]:4711\"").unwrap(), ["2001:db8:cafe::17"]);
        assert_eq!(clients("for=192.0.2.43, for=198.51.100.17").unwrap(), ["192.0.2.43", "198.51.100.17"]);
        let all = parsed("for=192.0.2.60;proto=http;by=203.0.113.43;host=\"a.example:81\"").unwrap();
        assert_eq!(all[0].proto.as_deref(), Some(b"http".as_slice()));
        assert_eq!(all[0].host.as_deref(), Some(b"a.example:81".as_slice()));
    }

    #[test]
    fn what_the_grammar_allows_besides() {
        assert_eq!(clients(" for=1.2.3.4 ,\t, proto=http , ;;host=a;").unwrap(), ["1.2.3.4", "-", "-"]);
        assert_eq!(clients("for=\"1.2.\\3.4\";later=\"a,b;c\"").unwrap(), ["1.2.3.4"]);
        assert_eq!(clients("").unwrap(), [""; 0]);
    }

    #[test]
    fn what_breaks_the_grammar_is_refused() {
        for value in [
            "for",
            "for=",
            "=1.2.3.4",
            "for =1.2.3.4",
            "for= 1.2.3.4",
            "for=1.2.3.4; proto=http",
            "for=1.2.3.4 proto=http",
            "for=[::1]",
            "for=::1",
            "for=\"1.2.3.4",
            "for=\"1.2.3.4\\",
            "for=1.2.3.4;for=1.2.3.5",
            "proto=http;Proto=http",
            "host=a;host=a",
            "by=_a;by=_b",
            "for=example.com",
            "by=example.com",
            "for=1.2.3.4:80",
            "for=\"1.2.3.4\"x",
        ] {
            assert_eq!(parsed(value), None, "{value}");
        }
    }
}
