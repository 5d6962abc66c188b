//! What stands before the head of a request, and how far that was read.
use super::protocol::Protocol;
use super::vars::Origin;
use crate::message::Version;

/// What the bytes before a head amount to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opening {
    NeedMore,
    /// The vars are complete; so many bytes are theirs.
    Vars(usize),
    /// So many bytes are no part of a request, and to be passed over. This is to be answered, if it is anything.
    Aside(usize, Vec<u8>),
}

/// How far an incomplete opening was looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Scan {
    /// Records of FastCGI up to here were looked at.
    pub(super) at: usize,
    /// The request that has begun.
    pub(super) begun: Option<Origin>,
}

impl Scan {
    /// How a response is said to what was seen so far.
    pub fn version(&self, protocol: Protocol) -> Version {
        match protocol {
            Protocol::Uwsgi => Version::Uwsgi,
            Protocol::Scgi => Version::Scgi,
            Protocol::FastCgi => Version::FastCgi(self.begun.map_or(USUAL, |begun| begun.id)),
        }
    }
}

/// The number that front ends give to their only request at a time.
const USUAL: u16 = 1;

#[cfg(test)]
pub(super) mod tests {
    use super::super::vars::Vars;
    use super::Opening;
    use crate::message::Refusal;

    type Open = fn(&[u8], &mut Vec<u8>) -> Result<Opening, Box<Refusal>>;

    /// Vars are read once all of them are there, whatever follows.
    pub fn are_read_however_they_are_cut(open: Open, whole: &[u8], is_read: impl Fn(Vars<'_>)) {
        let more = [whole, b"body"].concat();
        for length in 0..more.len() {
            let mut block = Vec::new();
            let opening = open(&more[..length], &mut block).expect("it is right");
            if length < whole.len() {
                assert_eq!((opening, block.len()), (Opening::NeedMore, 0));
                continue;
            }
            assert_eq!(opening, Opening::Vars(whole.len()));
            is_read(Vars::of(&block).expect("a block"));
        }
    }
}
