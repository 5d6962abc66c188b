//! Content codings (RFC 9110 section 8.4.1), and which of them a client accepts (section 12.5.3).
use super::grammar::{decimal, is_token, list, trim_ows};

/// A content coding that responses may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Coding {
    Gzip,
    Brotli,
    Zstd,
}

impl Coding {
    /// Every one of them.
    pub const ALL: [Coding; 3] = [Coding::Zstd, Coding::Brotli, Coding::Gzip];

    /// Its name in Accept-Encoding and Content-Encoding.
    pub const fn name(self) -> &'static str {
        match self {
            Coding::Gzip => "gzip",
            Coding::Brotli => "br",
            Coding::Zstd => "zstd",
        }
    }

    /// How the name of a file ends that has it.
    pub const fn suffix(self) -> &'static str {
        match self {
            Coding::Gzip => ".gz",
            Coding::Brotli => ".br",
            Coding::Zstd => ".zst",
        }
    }

    /// The coding of this name, in any case. `x-gzip` is gzip (RFC 9110 section 8.4.1.3).
    pub fn of(name: &[u8]) -> Option<Coding> {
        let name = if name.eq_ignore_ascii_case(b"x-gzip") { b"gzip" } else { name };
        Coding::ALL.into_iter().find(|coding| name.eq_ignore_ascii_case(coding.name().as_bytes()))
    }
}

/// The form of a response that a client accepts best.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    Coded(Coding),
    Identity,
    /// The client excludes every form offered, identity included. Section 12.5.3 lets a server send identity nevertheless, or answer 415.
    Nothing,
}

/// What the Accept-Encoding fields of a request say.
///
/// ```
/// use tricorn_proto::message::coding::{Accepted, Choice, Coding};
///
/// let accepted = Accepted::of([&b"gzip, br;q=0.8, zstd;q=0"[..]].into_iter());
/// assert_eq!(accepted.choose(&[Coding::Zstd, Coding::Brotli, Coding::Gzip]), Choice::Coded(Coding::Gzip));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Accepted {
    gzip: Option<Weight>,
    brotli: Option<Weight>,
    zstd: Option<Weight>,
    identity: Option<Weight>,
    /// `*`: what is not named.
    others: Option<Weight>,
}

/// A qvalue in thousandths (RFC 9110 section 12.4.2).
type Weight = u16;

/// The weight of a member without one.
const FULL: Weight = 1000;

impl Accepted {
    /// Reads the values of all Accept-Encoding fields of a request. A member that is not as the grammar has it says nothing. Of a coding that
    /// is named twice the lower weight counts. Without a field a client may not know any coding: identity is what it gets.
    pub fn of<'a>(fields: impl Iterator<Item = &'a [u8]>) -> Accepted {
        let mut accepted = Accepted::default();
        for (name, weight) in fields.flat_map(list).filter_map(member) {
            let slot = match Coding::of(name) {
                Some(coding) => accepted.slot(coding),
                None if name.eq_ignore_ascii_case(b"identity") => &mut accepted.identity,
                None if name == b"*" => &mut accepted.others,
                None => continue,
            };
            *slot = Some(slot.map_or(weight, |before| before.min(weight)));
        }
        accepted
    }

    /// The best of the codings that are offered, in the server's order of preference, or identity: the client's weights come first.
    /// Identity is what is sent if no coding is accepted, or if it is named with a higher weight than each of them.
    pub fn choose(&self, offered: &[Coding]) -> Choice {
        let weighed = offered.iter().map(|&coding| (self.weight(coding), coding)).filter(|(weight, _)| *weight > 0);
        // The first of equals.
        let best = weighed.reduce(|best, other| if other.0 > best.0 { other } else { best });
        match best {
            Some((weight, coding)) if self.identity.is_none_or(|identity| identity <= weight) => Choice::Coded(coding),
            _ if self.identity.or(self.others) == Some(0) => Choice::Nothing,
            _ => Choice::Identity,
        }
    }

    /// How much the client likes a coding; 0: not at all.
    fn weight(&self, coding: Coding) -> Weight {
        let named = match coding {
            Coding::Gzip => self.gzip,
            Coding::Brotli => self.brotli,
            Coding::Zstd => self.zstd,
        };
        named.or(self.others).unwrap_or(0)
    }

    fn slot(&mut self, coding: Coding) -> &mut Option<Weight> {
        match coding {
            Coding::Gzip => &mut self.gzip,
            Coding::Brotli => &mut self.brotli,
            Coding::Zstd => &mut self.zstd,
        }
    }
}

/// `codings [ weight ]`: a name, and how much it is liked.
fn member(text: &[u8]) -> Option<(&[u8], Weight)> {
    let mut parts = text.splitn(2, |&byte| byte == b';').map(trim_ows);
    let name = parts.next().filter(|name| is_token(name))?;
    let weight = match parts.next() {
        None => FULL,
        Some(weight) => qvalue(weight.strip_prefix(b"q=").or_else(|| weight.strip_prefix(b"Q="))?)?,
    };
    Some((name, weight))
}

/// `( "0" [ "." 0*3DIGIT ] ) / ( "1" [ "." 0*3("0") ] )`, in thousandths.
fn qvalue(text: &[u8]) -> Option<Weight> {
    let (whole, fraction) = match text {
        [whole @ (b'0' | b'1')] => (*whole, &b""[..]),
        [whole @ (b'0' | b'1'), b'.', fraction @ ..] if fraction.len() <= 3 => (*whole, fraction),
        _ => return None,
    };
    let mut digits = [b'0'; 3];
    digits[..fraction.len()].copy_from_slice(fraction);
    let thousandths = Weight::try_from(decimal(&digits)?).ok()?;
    match (whole, thousandths) {
        (b'0', thousandths) => Some(thousandths),
        (_, 0) => Some(FULL),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::Choice::{Coded, Identity, Nothing};
    use super::Coding::{Brotli, Gzip, Zstd};
    use super::*;

    fn accepted(fields: &[&str]) -> Accepted {
        Accepted::of(fields.iter().map(|field| field.as_bytes()))
    }

    /// Of all three, zstd liked best.
    fn of_all(field: &str) -> Choice {
        accepted(&[field]).choose(&[Zstd, Brotli, Gzip])
    }

    #[test]
    fn codings_have_the_names_of_the_registry() {
        for coding in Coding::ALL {
            assert_eq!(Coding::of(coding.name().as_bytes()), Some(coding));
            assert_eq!(Coding::of(coding.name().to_uppercase().as_bytes()), Some(coding));
        }
        assert_eq!(Coding::of(b"X-GZip"), Some(Gzip));
        for other in ["", "identity", "*", "deflate", "gzi", "gzipp", "x-br"] {
            assert_eq!(Coding::of(other.as_bytes()), None, "{other}");
        }
    }

    /// Section 12.5.3, 1: without the field any coding is acceptable, but a client that says nothing may know none.
    #[test]
    fn a_request_without_the_field_gets_identity() {
        assert_eq!(accepted(&[]).choose(&Coding::ALL), Identity);
    }

    /// "An Accept-Encoding header field with a field value that is empty implies that the user agent does not want any content coding".
    #[test]
    fn an_empty_field_wants_identity() {
        for empty in ["", " ", ",", " , ,"] {
            assert_eq!(of_all(empty), Identity, "{empty:?}");
        }
    }

    #[test]
    fn of_equal_weights_the_server_chooses() {
        for field in ["gzip, deflate, br, zstd", "zstd,br,gzip", "br;q=0.5, zstd;q=0.5, gzip;q=0.5"] {
            assert_eq!(of_all(field), Coded(Zstd), "{field}");
            assert_eq!(accepted(&[field]).choose(&[Gzip, Brotli]), Coded(Gzip), "{field}");
        }
    }

    #[test]
    fn weights_come_before_the_order_of_the_server() {
        assert_eq!(of_all("zstd;q=0.1, br;q=0.2, gzip;q=0.3"), Coded(Gzip));
        assert_eq!(of_all("zstd;q=0.999, br"), Coded(Brotli));
        assert_eq!(of_all("gzip;q=0.001"), Coded(Gzip));
    }

    #[test]
    fn only_what_is_offered_is_chosen() {
        assert_eq!(accepted(&["br, gzip;q=0.1"]).choose(&[Zstd, Gzip]), Coded(Gzip));
        assert_eq!(accepted(&["br"]).choose(&[Zstd, Gzip]), Identity);
        assert_eq!(accepted(&["gzip"]).choose(&[]), Identity);
    }

    /// "A qvalue of 0 means 'not acceptable'" (section 12.4.2).
    #[test]
    fn a_weight_of_zero_excludes() {
        assert_eq!(of_all("gzip;q=0"), Identity);
        assert_eq!(of_all("gzip;q=0, *"), Coded(Zstd));
        assert_eq!(of_all("zstd;q=0.000, br;q=0., gzip"), Coded(Gzip));
    }

    /// "The asterisk '*' symbol in an Accept-Encoding field matches any available content coding not explicitly listed".
    #[test]
    fn an_asterisk_stands_for_what_is_not_named() {
        assert_eq!(of_all("*"), Coded(Zstd));
        assert_eq!(of_all("zstd;q=0.5, *"), Coded(Brotli));
        assert_eq!(of_all("zstd;q=0.5, *;q=0.4"), Coded(Zstd));
        assert_eq!(of_all("gzip, *;q=0"), Coded(Gzip));
    }

    #[test]
    fn identity_is_sent_if_it_is_liked_better() {
        assert_eq!(of_all("identity, gzip;q=0.5"), Identity);
        assert_eq!(of_all("identity;q=0.5, gzip;q=0.4"), Identity);
        assert_eq!(of_all("identity, gzip"), Coded(Gzip));
        assert_eq!(of_all("identity;q=0.5, gzip"), Coded(Gzip));
        assert_eq!(of_all("identity"), Identity);
    }

    /// Section 12.5.3, 2: identity is acceptable unless it is excluded by its name, or by `*` without being named.
    #[test]
    fn identity_can_be_excluded() {
        assert_eq!(of_all("identity;q=0"), Nothing);
        assert_eq!(of_all("*;q=0"), Nothing);
        assert_eq!(of_all("identity;q=0, br"), Coded(Brotli));
        assert_eq!(of_all("*;q=0, identity"), Identity);
        assert_eq!(of_all("*;q=0, identity;q=0.1"), Identity);
        assert_eq!(of_all("*, identity;q=0"), Coded(Zstd));
        assert_eq!(of_all("compress, *;q=0"), Nothing);
    }

    #[test]
    fn several_fields_are_one_list() {
        assert_eq!(accepted(&["deflate", "br;q=0.5", "gzip;q=0.4"]).choose(&Coding::ALL), Coded(Brotli));
    }

    #[test]
    fn of_a_coding_named_twice_the_lower_weight_counts() {
        assert_eq!(of_all("gzip, gzip;q=0"), Identity);
        assert_eq!(of_all("x-gzip;q=0, gzip"), Identity);
        assert_eq!(of_all("br;q=0.1, br;q=0.9, gzip;q=0.5"), Coded(Gzip));
    }

    #[test]
    fn names_and_the_letter_of_the_weight_have_no_case_and_blanks_stand_around_them() {
        assert_eq!(of_all("\t GZIP \t;\t Q=0.5 , BR ;q=0.4 "), Coded(Gzip));
    }

    #[test]
    fn a_member_that_is_none_says_nothing() {
        for bad in [
            "gzip;q=",
            "gzip;q=2",
            "gzip;q=1.1",
            "gzip;q=1.001",
            "gzip;q=-1",
            "gzip;q=+1",
            "gzip;q=.5",
            "gzip;q=0.1234",
            "gzip;q=0,5",
            "gzip;q=a",
            "gzip;q=00",
            "gzip;q=01",
            "gzip;q=1e0",
            "gzip; q =1",
            "gzip;q= 1",
            "gzip;level=9",
            "gzip;q=1;x=y",
            "gzip;",
            "gz ip",
            "gzip br",
            "\"gzip\"",
            ";q=1",
            "gzip\u{e9}",
            "gzip=1",
        ] {
            assert_eq!(accepted(&[bad, "br;q=0.1"]).choose(&[Gzip, Brotli]), Coded(Brotli), "{bad:?}");
        }
    }

    #[test]
    fn weights_are_thousandths() {
        for (text, weight) in [
            ("0", 0),
            ("1", 1000),
            ("0.", 0),
            ("1.", 1000),
            ("1.0", 1000),
            ("1.000", 1000),
            ("0.5", 500),
            ("0.05", 50),
            ("0.005", 5),
            ("0.999", 999),
            ("0.1", 100),
        ] {
            assert_eq!(qvalue(text.as_bytes()), Some(weight), "{text}");
        }
    }
}
