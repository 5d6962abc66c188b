//! Sec-WebSocket-Extensions (RFC 6455 section 9.1): `extension *( "," extension )`, where
//! `extension = token *( ";" token [ "=" ( token / quoted-string ) ] )`.
use super::Wrong;
use crate::message::grammar::{FIELD_VALUE, TCHAR, is};
use crate::websocket::deflate::Offer;

/// Appends the offers of permessage-deflate that can be understood, in their order. Other extensions are passed over.
pub(super) fn read(value: &[u8], offers: &mut Vec<Offer>) -> Result<(), Wrong> {
    let mut rest = Text(value);
    loop {
        rest.skip_space();
        match rest.0.first() {
            None => return Ok(()),
            // RFC 9110 section 5.6.1.2: "a recipient MUST parse and ignore a reasonable number of empty list elements".
            Some(b',') => rest.0 = &rest.0[1..],
            Some(_) => {
                let (name, parameters) = extension(&mut rest)?;
                if name.eq_ignore_ascii_case(b"permessage-deflate") && offers.len() < MAX_OFFERS {
                    let parameters = parameters.iter().map(|(name, value)| (*name, value.as_deref()));
                    offers.extend(Offer::read(parameters));
                }
                rest.skip_space();
                if !matches!(rest.0.first(), None | Some(b',')) {
                    return Err(Wrong::Extensions);
                }
            }
        }
    }
}

type Parameter<'a> = (&'a [u8], Option<Vec<u8>>);

fn extension<'a>(rest: &mut Text<'a>) -> Result<(&'a [u8], Vec<Parameter<'a>>), Wrong> {
    let name = rest.token()?;
    let mut parameters = Vec::new();
    while rest.take(b';') {
        rest.skip_space();
        let parameter = rest.token()?;
        let value = if rest.take(b'=') { Some(rest.value()?) } else { None };
        parameters.push((parameter, value));
    }
    Ok((name, parameters))
}

/// What is still to be read.
struct Text<'a>(&'a [u8]);

impl<'a> Text<'a> {
    fn skip_space(&mut self) {
        while let [b' ' | b'\t', rest @ ..] = self.0 {
            self.0 = rest;
        }
    }

    /// Whether this mark comes next, perhaps after space; it is taken then.
    fn take(&mut self, mark: u8) -> bool {
        self.skip_space();
        match self.0 {
            [first, rest @ ..] if *first == mark => {
                self.0 = rest;
                true
            }
            _ => false,
        }
    }

    fn token(&mut self) -> Result<&'a [u8], Wrong> {
        let length = self.0.iter().take_while(|&&byte| is(byte, TCHAR)).count();
        let (token, rest) = self.0.split_at(length);
        self.0 = rest;
        if token.is_empty() { Err(Wrong::Extensions) } else { Ok(token) }
    }

    /// "When using the quoted-string syntax variant, the value after quoted-string unescaping MUST conform to the
    /// 'token' ABNF."
    fn value(&mut self) -> Result<Vec<u8>, Wrong> {
        self.skip_space();
        let [b'"', quoted @ ..] = self.0 else { return Ok(self.token()?.to_vec()) };
        let (mut rest, mut value) = (quoted, Vec::new());
        loop {
            match rest {
                [b'"', after @ ..] => {
                    self.0 = after;
                    break;
                }
                [b'\\', byte, after @ ..] if is(*byte, FIELD_VALUE) => {
                    value.push(*byte);
                    rest = after;
                }
                [byte, after @ ..] => {
                    value.push(*byte);
                    rest = after;
                }
                [] => return Err(Wrong::Extensions),
            }
        }
        if crate::message::grammar::is_token(&value) { Ok(value) } else { Err(Wrong::Extensions) }
    }
}

/// More than anybody needs.
const MAX_OFFERS: usize = 16;
