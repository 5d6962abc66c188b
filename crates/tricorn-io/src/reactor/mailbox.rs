//! What comes for this worker alone: requests of the sessions that it has, or that begin here.
use crate::one_queue::births::Births;
use crate::sys::channel::Channel;

pub(super) struct Mailbox {
    channel: Channel,
    /// There may be a message.
    has_mail: bool,
    /// There is one, and there was no room for it.
    is_behind: bool,
    /// Where sessions begin.
    pub births: Births,
}

impl Mailbox {
    pub fn new(channel: Channel) -> Mailbox {
        Mailbox { channel, has_mail: true, is_behind: false, births: Births::default() }
    }

    pub fn channel(&self) -> &Channel {
        &self.channel
    }

    pub fn mail_came(&mut self) {
        self.has_mail = true;
    }

    #[inline]
    pub fn has_mail(&self) -> bool {
        self.has_mail
    }

    /// Whether messages were not taken yet.
    pub fn holds_any(&self) -> bool {
        self.channel.holds_any()
    }

    /// One message was taken, or none was there or had room.
    pub fn was_read(&mut self, taken: bool) {
        self.has_mail = taken;
        self.is_behind = !taken && self.channel.holds_any();
    }

    /// What there was no room for may have some now.
    pub fn look_again(&mut self) {
        self.has_mail |= self.is_behind;
    }
}
