//! What the tokens of the poller stand for that are no connections, and the indices of listeners.
use crate::sys::poll::Token;

/// Tokens from here on are not connections: those of listeners (`SPECIAL` plus their index) and the wake pipe.
pub(super) const SPECIAL: Token = 0xffff_ffff_0000_0000;
/// Our ends of bridges: the token of the connection with this bit, which no generation has.
pub(super) const NEAR: Token = 1 << 63;
pub const WAKE: Token = Token::MAX;
/// The channel has a message.
pub const CHANNEL: Token = Token::MAX - 1;
/// The group was woken.
pub const GROUP_WAKEUP: Token = Token::MAX - 2;
/// Pieces of bodies are on disk.
pub(super) const SPOOLED: Token = Token::MAX - 3;
/// The application's metrics have been read.
pub(super) const SCRAPED: Token = Token::MAX - 4;

/// Listeners from this index on are admin listeners.
pub(super) const FIRST: u16 = 0x8000;

#[inline]
pub fn is_admin(listener: u16) -> bool {
    listener >= FIRST
}

pub(super) fn admin_token(index: usize) -> Token {
    SPECIAL + Token::from(FIRST + index as u16)
}
