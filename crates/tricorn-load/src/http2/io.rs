//! What steps of clients need, and what they count.
use crate::client::Moved;
use crate::clock::Clock;
use crate::poller::Poller;
use crate::prepared::Prepared;
use crate::wire::Origin;

pub struct Io<'a> {
    pub poller: &'a Poller,
    pub clock: &'a Clock,
    pub origins: &'a [Origin],
    pub prepared: &'a [Prepared],
    pub buffer: &'a mut [u8],
    pub moved: &'a mut Moved,
}
