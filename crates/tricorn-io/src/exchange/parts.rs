//! A piece of a body that is sent in parts, each of which keeps all of it.
use super::outbox::SharedBytes;
use std::sync::Arc;

/// The owner of the bytes, once a part of them has to wait.
pub(super) struct Parts<K> {
    keep: Option<K>,
    owner: Option<Arc<SharedBytes>>,
}

impl<K: FnOnce() -> SharedBytes> Parts<K> {
    pub fn new(keep: K) -> Parts<K> {
        Parts { keep: Some(keep), owner: None }
    }

    /// An owner of the bytes from `at` to `end`.
    pub fn keep(&mut self, at: usize, end: usize) -> SharedBytes {
        if let Some(keep) = self.keep.take() {
            self.owner = Some(Arc::new(keep()));
        }
        Box::new(Part { owner: self.owner.clone(), at, end })
    }
}

struct Part {
    owner: Option<Arc<SharedBytes>>,
    at: usize,
    end: usize,
}

impl AsRef<[u8]> for Part {
    fn as_ref(&self) -> &[u8] {
        let bytes = self.owner.as_ref().map_or(b"".as_slice(), |owner| (***owner).as_ref());
        bytes.get(self.at..self.end).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_parts_have_one_owner_which_is_made_when_it_is_needed() {
        let mut made = 0;
        let mut parts = Parts::new(|| {
            made += 1;
            Box::new(b"abcdef".to_vec()) as SharedBytes
        });
        let (second, third) = (parts.keep(2, 4), parts.keep(4, 6));
        drop(parts);
        assert_eq!(((*second).as_ref(), (*third).as_ref(), made), (b"cd".as_slice(), b"ef".as_slice(), 1));
    }
}
