//! Descriptors that clients hold beside those of their connections, and the thread that some of them are lent to.
use super::sender::Sender;

pub(super) struct ExtraDescriptors {
    /// Of bodies, of replies that wait for their clients, and of connections that the sender has after their end.
    files: usize,
    /// Connections that are bridged: our end of a pair, and the exchange's.
    bridges: usize,
    pub sender: Sender,
}

impl ExtraDescriptors {
    pub fn new(sender: Sender) -> ExtraDescriptors {
        ExtraDescriptors { files: 0, bridges: 0, sender }
    }

    /// A file, if it is one.
    #[inline]
    pub fn opened(&mut self, is_file: bool) {
        self.files += usize::from(is_file);
    }

    #[inline]
    pub fn closed(&mut self, is_file: bool) {
        self.files -= usize::from(is_file);
    }

    pub fn bridge_begins(&mut self) {
        self.bridges += 1;
    }

    pub fn bridge_ends(&mut self) {
        self.bridges -= 1;
    }

    #[inline]
    pub fn count(&self) -> usize {
        self.files + 2 * self.bridges
    }
}
