//! Front ends whose forwarded headers are believed: addresses, CIDR blocks, or everybody.
use std::net::IpAddr;

/// No peer by default (but see `allows` on unix sockets).
#[derive(Debug, Clone, Default)]
pub struct Trust {
    everybody: bool,
    blocks: Vec<Block>,
}

/// A network: the bits of its address and how many of them count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Block {
    family: Family,
    /// Left-aligned in the family's width.
    bits: u128,
    prefix: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Family {
    V4,
    V6,
}

impl Trust {
    /// Every peer.
    pub fn everybody() -> Trust {
        Trust { everybody: true, blocks: Vec::new() }
    }

    /// From gunicorn's `forwarded_allow_ips`: comma separated addresses and CIDR blocks, or `*`.
    pub fn parse(text: &str) -> Result<Trust, String> {
        let mut trust = Trust::default();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            match part {
                "*" => trust.everybody = true,
                part => trust.blocks.push(Block::parse(part)?),
            }
        }
        Ok(trust)
    }

    /// `None` is a peer on a unix socket, which is always trusted.
    pub fn allows(&self, peer: Option<IpAddr>) -> bool {
        let Some(peer) = peer else { return true };
        // A listener on `::` sees an IPv4 peer as ::ffff:a.b.c.d.
        self.everybody || {
            let (canonical, literal) = (address(peer.to_canonical()), address(peer));
            self.blocks.iter().any(|block| block.holds(canonical) || block.holds(literal))
        }
    }
}

impl Block {
    fn parse(text: &str) -> Result<Block, String> {
        let (ip, length) = match text.split_once('/') {
            Some((ip, length)) => (ip, Some(length)),
            None => (text, None),
        };
        let wrong = |what: &str| {
            format!("{text:?} {what}; expected an address (10.0.0.1, ::1), a block (10.0.0.0/8, fd00::/8) or *")
        };
        let ip: IpAddr = ip.parse().map_err(|_| wrong("is not an address or a CIDR block"))?;
        let (family, bits) = address(ip);
        let prefix = match length {
            None => family.width(),
            Some(length) => {
                let widest = family.width();
                prefix_length(length, family)
                    .ok_or_else(|| wrong(&format!("has no prefix length from 0 to {widest}")))?
            }
        };
        let block = Block { family, bits, prefix };
        if bits & !block.mask() != 0 {
            // As Python's ip_network: who writes 192.168.1.1/24 meant one host or the whole block.
            return Err(wrong("has host bits set"));
        }
        Ok(block)
    }

    fn holds(&self, (family, bits): (Family, u128)) -> bool {
        self.family == family && (self.bits ^ bits) & self.mask() == 0
    }

    /// The bits that count, left-aligned in 128.
    fn mask(&self) -> u128 {
        u128::MAX.checked_shl(128 - self.prefix).unwrap_or(0)
    }
}

impl Family {
    fn width(self) -> u32 {
        match self {
            Family::V4 => 32,
            Family::V6 => 128,
        }
    }
}

/// Left-aligned in 128 bits.
fn address(ip: IpAddr) -> (Family, u128) {
    match ip {
        IpAddr::V4(ip) => (Family::V4, u128::from(ip.to_bits()) << 96),
        IpAddr::V6(ip) => (Family::V6, ip.to_bits()),
    }
}

/// `24`, or for IPv4 also `255.255.255.0`, as Python's ip_network takes it.
fn prefix_length(text: &str, family: Family) -> Option<u32> {
    let digits = !text.is_empty() && text.len() <= 3 && text.bytes().all(|byte| byte.is_ascii_digit());
    if digits {
        return text.parse().ok().filter(|&length| length <= family.width());
    }
    let mask = text.parse::<std::net::Ipv4Addr>().ok().filter(|_| family == Family::V4)?.to_bits();
    (mask.leading_ones() == mask.count_ones()).then(|| mask.leading_ones())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(text: &str, peer: &str) -> bool {
        Trust::parse(text).unwrap().allows(Some(peer.parse().unwrap()))
    }

    #[test]
    fn addresses_and_blocks_are_matched() {
        for (list, peer) in [
            ("127.0.0.1,::1", "127.0.0.1"),
            ("127.0.0.1, ::1", "::1"),
            ("10.0.0.0/8", "10.255.255.255"),
            ("10.0.0.0/255.0.0.0", "10.1.2.3"),
            ("0.0.0.0/0", "1.2.3.4"),
            ("fd00::/8", "fdff::1"),
            ("::/0", "::1"),
            ("*", "1.2.3.4"),
            ("10.0.0.1,*", "::2"),
            ("127.0.0.1", "::ffff:127.0.0.1"),
            ("10.0.0.0/8", "::ffff:10.9.8.7"),
            ("::ffff:10.0.0.1", "::ffff:10.0.0.1"),
        ] {
            assert!(allows(list, peer), "{list} {peer}");
        }
        for (list, peer) in [
            ("", "127.0.0.1"),
            ("127.0.0.1", "127.0.0.2"),
            ("10.0.0.0/8", "11.0.0.0"),
            ("10.0.0.0/8", "::a00:1"),
            ("::/0", "1.2.3.4"),
            ("0.0.0.0/0", "::1"),
        ] {
            assert!(!allows(list, peer), "{list} {peer}");
        }
    }

    #[test]
    fn a_unix_socket_is_always_trusted() {
        assert!(Trust::default().allows(None));
        assert!(!Trust::default().allows(Some("127.0.0.1".parse().unwrap())));
    }

    #[test]
    fn what_is_no_address_is_refused_in_words() {
        for (text, why) in [
            ("localhost", "is not an address"),
            ("192.168.1.1/24", "has host bits set"),
            ("10.0.0.0/33", "from 0 to 32"),
            ("::/129", "from 0 to 128"),
            ("10.0.0.0/", "from 0 to 32"),
            ("10.0.0.0/+8", "from 0 to 32"),
            ("10.0.0.0/255.0.255.0", "from 0 to 32"),
            ("fd00::/255.0.0.0", "from 0 to 128"),
            ("1.2.3", "is not an address"),
        ] {
            let error = Trust::parse(text).unwrap_err();
            assert!(error.contains(why) && error.contains("expected"), "{text}: {error}");
        }
    }
}
