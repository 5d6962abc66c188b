//! The limit of what all sessions of TLS hold for their sockets (`tls_buffer_total`).
use crate::config::Config;
use crate::scoreboard::Scoreboard;
use crate::secured::SessionMemory;

#[derive(Debug)]
pub(super) struct SessionLimit {
    /// `None`: no client speaks TLS.
    memory: Option<SessionMemory>,
    /// Until when no session is looked for that could give back memory, since none could.
    searched_until: u64,
}

impl SessionLimit {
    pub fn new(config: &Config, board: Scoreboard) -> SessionLimit {
        let memory = config.tls.as_ref().map(|tls| SessionMemory::new(board, tls.buffer_total));
        SessionLimit { memory, searched_until: 0 }
    }

    #[inline]
    pub fn is_exceeded(&self) -> bool {
        self.memory.as_ref().is_some_and(SessionMemory::is_over)
    }

    /// Whether sessions have given back enough.
    pub fn is_relieved(&self) -> bool {
        self.memory.as_ref().is_none_or(SessionMemory::is_relieved)
    }

    /// Whether it is time to look for sessions that can be closed.
    pub fn may_search(&self, now: u64) -> bool {
        now >= self.searched_until
    }

    /// There was none.
    pub fn search_again(&mut self, at: u64) {
        self.searched_until = at;
    }
}
