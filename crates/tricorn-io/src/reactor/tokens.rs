//! The tokens of the poller, and what each stands for.
//!
//! ```text
//!   generation, index                        a connection (`slab.rs`)
//!   the same, with the bit ADMIN             an admin connection
//!   the same, with the bit NEAR              our end of a pair, of a connection that is bridged or whose request is lent
//!   SPECIAL + index                          a listener
//!   SPECIAL + ADMIN_LISTENERS + index        an admin listener
//!   the last ones                            eventfds, and the channel
//! ```
use crate::sys::poll::Token;

/// No generation of a slab has this bit, nor the next one.
const ADMIN: Token = 1 << 62;
pub(super) const NEAR: Token = 1 << 63;
pub(super) const SPECIAL: Token = 0xffff_ffff_0000_0000;
const ADMIN_LISTENERS: Token = 1 << 16;
pub const WAKE: Token = Token::MAX;
/// The channel has a message.
pub const CHANNEL: Token = Token::MAX - 1;
/// The group was woken.
pub const GROUP_WAKEUP: Token = Token::MAX - 2;
/// Jobs at disks have an outcome.
pub const DISK_NEWS: Token = Token::MAX - 3;
/// The worker's own mailbox has a message.
pub const MAILBOX: Token = Token::MAX - 4;

/// Where an event comes from. Tokens are those of the table that has the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    Connection(Token),
    /// Our end of a connection's pair.
    Near(Token),
    AdminConnection(Token),
    Listener(u16),
    AdminListener(u16),
    Wake,
    Channel,
    GroupWakeup,
    DiskNews,
    Mailbox,
}

impl Source {
    #[inline]
    pub fn of(token: Token) -> Source {
        match token {
            ..ADMIN => Source::Connection(token),
            ADMIN..NEAR => Source::AdminConnection(token & !ADMIN),
            NEAR..SPECIAL => Source::Near(token & !NEAR),
            WAKE => Source::Wake,
            CHANNEL => Source::Channel,
            GROUP_WAKEUP => Source::GroupWakeup,
            DISK_NEWS => Source::DiskNews,
            MAILBOX => Source::Mailbox,
            listener if listener & ADMIN_LISTENERS != 0 => Source::AdminListener(listener as u16),
            listener => Source::Listener(listener as u16),
        }
    }
}

/// What the poller calls the admin connection with this token.
pub(super) fn of_admin(token: Token) -> Token {
    token | ADMIN
}

/// What it calls the admin listener with this index.
pub(super) fn of_admin_listener(index: u16) -> Token {
    SPECIAL + ADMIN_LISTENERS + Token::from(index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_token_stands_for_one_thing() {
        let connection = 0x3fff_fffe_0000_0007;
        let sources =
            [connection, connection | NEAR, of_admin(connection), SPECIAL + 3, of_admin_listener(3), DISK_NEWS];
        let expected = [
            Source::Connection(connection),
            Source::Near(connection),
            Source::AdminConnection(connection),
            Source::Listener(3),
            Source::AdminListener(3),
            Source::DiskNews,
        ];
        assert_eq!(sources.map(Source::of), expected);
    }
}
