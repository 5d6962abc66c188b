//! What the reactor does for its admin connections: it shows them the rest of the worker, and tells the log what went wrong.
use super::Reactor;
use super::admin::{Admin, View};
use super::listener::Listener;
use crate::clock;
use crate::config;
use crate::sys::poll::{Event, Token};

impl Reactor {
    /// Takes these listeners too. They are watched from now on, whatever becomes of the gate.
    pub fn open_admin(&mut self, listeners: Vec<Listener>) -> rustix::io::Result<()> {
        self.admin.open(listeners)
    }

    /// No thread has looked at the events for so long that a question may be waiting.
    pub fn is_admin_starved(&self, now: u64) -> bool {
        self.admin.is_open() && now.saturating_sub(self.dispatch.looked_at()) > config::ADMIN_PATIENCE
    }

    pub(super) fn accept_admins(&mut self, index: u16) {
        self.with_admin(|admin, view| admin.accept(index, config::STEPS / 2, view));
    }

    pub(super) fn admin_event(&mut self, token: Token, event: Event) {
        self.with_admin(|admin, view| admin.on_event(token, event, view));
    }

    /// An admin connection has more to do.
    pub(super) fn admin_has_turn(&mut self, token: Token) {
        self.with_admin(|admin, view| admin.look_again(token, view));
    }

    pub(super) fn answer_scrapes(&mut self) {
        self.with_admin(Admin::scraped);
    }

    /// Others serve on, and answer from now on.
    pub(super) fn leave_admin(&mut self) {
        self.with_admin(|admin, view| {
            admin.leave(view);
            0
        });
    }

    /// Time has passed.
    #[inline]
    pub(super) fn tend_admin(&mut self, now: u64) {
        if self.admin.next_due().is_some_and(|due| due <= now) {
            self.with_admin(|admin, view| admin.expire(now, view));
        }
        if let Some(incident) = self.admin.take_incident() {
            self.connections.warn(incident);
            self.connections.tell_shortage(now);
        }
    }

    /// `act` says how many steps it took.
    fn with_admin(&mut self, act: impl FnOnce(&mut Admin, &View<'_>) -> u32) {
        self.connections.wall_mut().refresh(clock::now());
        let is_draining = self.connections.is_draining();
        let date = self.connections.wall().date();
        let view = View { listeners: self.accepting.listeners(), is_draining, date };
        let steps = act(&mut self.admin, &view);
        self.connections.work_mut().spend_steps(steps);
    }
}
