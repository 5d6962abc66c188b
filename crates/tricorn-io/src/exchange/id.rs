//! The name of a request, as a connection is named by its token.
use crate::sys::poll::Token;

/// A connection, and which of its requests. An id is given once: a late one meets neither the next request of the connection nor
/// the next connection at the same place of the table.
///
/// Only the wire of a connection makes ids (`reactor/wire/`): a token alone does not tell which request is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequestId {
    connection: Token,
    stream: u32,
}

impl RequestId {
    #[inline]
    pub(crate) fn new(connection: Token, stream: u32) -> RequestId {
        RequestId { connection, stream }
    }

    /// The connection that the request came by.
    #[inline]
    pub fn connection(self) -> Token {
        self.connection
    }

    /// Which of its connection's requests it is.
    #[inline]
    pub(crate) fn stream(self) -> u32 {
        self.stream
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_requests_of_a_connection_have_two_ids() {
        let (one, other) = (RequestId::new(7, 1), RequestId::new(7, 3));
        assert_ne!(one, other);
        assert_eq!(one.connection(), other.connection());
        assert_ne!(one, RequestId::new(8, 1), "streams count for each connection");
    }
}
