//! What the reactor owes to a thread that holds the GIL: objects to be dropped, and lines for the log.
use crate::config;
use crate::exchange::Attachment;
use crate::exchange::outbox::{Outbox, SharedBytes};
use crate::exchange::output::Output;

/// Something the log should tell; taken by an app thread (`Engine::take_notices`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// Whether it deserves a warning (a refused request) or is for debugging only.
    pub warning: bool,
    pub text: String,
}

/// What app threads owe to the outside: objects to be dropped and lines to be logged by a thread that holds the GIL.
#[derive(Default)]
pub struct Chores {
    pub notices: Vec<Notice>,
    pub attachments: Vec<Attachment>,
    pub spent: Vec<SharedBytes>,
}

impl Chores {
    /// How much there is to do.
    pub fn weight(&self) -> usize {
        let Chores { notices, attachments, spent } = self;
        notices.len() + attachments.len() + spent.len()
    }

    /// Closes a connection, or our handle of it: nothing of what waits there is sent any more.
    pub(super) fn end(&mut self, mut output: Output) {
        let mut outbox = output.take_outbox(&mut self.spent);
        drop(output);
        self.end_outbox(&mut outbox);
    }

    pub(super) fn end_outbox(&mut self, outbox: &mut Outbox) {
        outbox.clear(&mut self.spent);
    }

    /// Keeps a line for the log; beyond a number of them they are dropped.
    pub fn notice(&mut self, warning: bool, text: impl FnOnce() -> String) {
        if self.notices.len() < config::NOTICES {
            self.notices.push(Notice { warning, text: text() });
        }
    }
}
