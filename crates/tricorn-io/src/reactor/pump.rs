//! The order of work: what the thread that runs the reactor does next.
use super::Reactor;
use super::connections::{Outcome, Runner, SlotReadiness};
use super::tokens::Source;
use crate::exchange::Exchange;
use crate::exchange::id::RequestId;
use crate::sys::poll::{Event, Events, Token};

impl Reactor {
    /// Does what can be done without waiting and returns the next request to be answered, if the runner may start one.
    ///
    /// Order: requests that wait already, then connections to be looked at again, then new connections, then events, one
    /// at a time, so that a request is answered while its bytes are still warm. Connections that have more bytes than fit
    /// the turn wait in `again` for the next look at the events ([`Reactor::has_leftovers`]). What is more work than the baton
    /// may be held for is left to the next holder ([`Reactor::has_work`]).
    ///
    /// Once a turn is over, requests of HTTP/2 connections come last: who has asked meanwhile is in the queue before the next of them.
    pub fn pump(&mut self, runner: Runner) -> Option<Box<Exchange>> {
        self.connections.work_mut().begin(runner);
        let starts = runner == Runner::AppThread && self.may_start();
        loop {
            if !self.connections.work_mut().takes_step() {
                return None;
            }
            let is_deferred = starts && self.dispatch.defers_stream();
            if starts
                && !is_deferred
                && let Some(id) = self.dispatch.next_request()
            {
                if let Some(exchange) = self.begin_waiting(id) {
                    return Some(exchange);
                }
                continue;
            }
            self.act_on_updates();
            let complete = if let Some(token) = self.connections.work_mut().next_again() {
                let outcome = self.connections.look_again(token);
                self.act_on(outcome)
            } else if self.connections.work().has_disk_news() {
                if self.take_looked_up() {
                    continue;
                }
                let outcome = self.connections.take_disk_news();
                self.act_on(outcome)
            } else if let Some(listener) = self.accepting.next_in_round() {
                self.accept_one(listener)
            } else if self.mailbox.as_ref().is_some_and(|mailbox| mailbox.has_mail()) {
                self.take_mail()
            } else if let Some(event) = self.dispatch.next_event() {
                self.on_event(event)
            } else if let Some(token) = self.admin.next_in_turn() {
                self.admin_has_turn(token);
                continue;
            } else if self.connections.work().has_held() {
                self.connections.send_held();
                continue;
            } else if is_deferred {
                self.dispatch.has_read();
                let Some(id) = self.dispatch.next_request() else { continue };
                if let Some(exchange) = self.begin_waiting(id) {
                    return Some(exchange);
                }
                continue;
            } else {
                return None;
            };
            let complete = complete.and_then(|id| self.serve_file(id));
            let Some(id) = complete.and_then(|id| self.follow(id)) else { continue };
            if starts && let Some((complete, trunk)) = self.is_next(id) {
                if let Some(exchange) = self.begin(id, complete) {
                    self.dispatch.began_at_once(trunk);
                    return Some(exchange);
                }
                continue;
            }
            self.enqueue(id);
        }
    }

    /// Whether a request that has come is served before all that may come: when it was complete, and by which HTTP/2 connection it came.
    #[inline]
    fn is_next(&self, id: RequestId) -> Option<(u64, Option<Token>)> {
        if self.dispatch.admission().has_waiting() {
            return None;
        }
        let (complete, trunk) = (self.connections.complete_since(id), self.connections.trunk(id));
        let comes_last = trunk.is_some() && self.dispatch.is_turn_over(complete);
        (!comes_last).then_some((complete, trunk))
    }

    #[inline]
    fn act_on(&mut self, outcome: Option<Outcome>) -> Option<RequestId> {
        self.act(outcome?)
    }

    fn on_event(&mut self, event: Event) -> Option<RequestId> {
        match Source::of(event.token) {
            Source::Connection(_) => {
                let outcome = self.connections.on_event(event);
                return self.act_on(outcome);
            }
            Source::Listener(index) => {
                self.accepting.begin_round(index);
                let listener = self.accepting.next_in_round()?;
                return self.accept_one(listener);
            }
            Source::Near(token) => self.connections.near_event(token, event),
            Source::AdminConnection(token) => self.admin_event(token, event),
            Source::AdminListener(index) => self.accept_admins(index),
            Source::Wake => self.dispatch.wake(),
            Source::Channel => self.accepting.message_came(),
            Source::GroupWakeup => {}
            Source::Mailbox => {
                if let Some(mailbox) = &mut self.mailbox {
                    mailbox.mail_came();
                }
            }
            Source::DiskNews => {
                self.connections.work_mut().note_disk_news(true);
                self.answer_scrapes();
            }
        }
        None
    }

    /// The next of the requests under way to whose connections something happened, if its exchange is still there.
    pub fn next_readiness(&mut self) -> Option<SlotReadiness> {
        loop {
            let id = self.dispatch.next_ready()?;
            if let Some(readiness) = self.connections.take_readiness(id) {
                return Some(readiness);
            }
        }
    }

    /// Takes over the events of a wait and does what time has brought.
    pub fn arrived(&mut self, batch: &mut Events, now: u64) {
        self.dispatch.arrived(batch, now);
        self.connections.work_mut().begin_turn(now);
        self.admin.begin_turn();
        self.tick(now);
    }

    /// What time alone brings: texts of the clock, deadlines, the end of a pause. Under a hub the monitor calls this, and has not looked at
    /// the events.
    pub fn tick(&mut self, now: u64) {
        if let Some(mailbox) = &mut self.mailbox {
            mailbox.look_again();
        }
        self.connections.wall_mut().refresh(now);
        self.admin.refresh_load(now);
        self.end_pause(now);
        self.connections.expire(now, |id| self.dispatch.add_ready(id));
        self.connections.shorten_idle(now);
        self.expire_named(now);
        self.act_on_updates();
        self.tend_admin(now);
        self.connections.tell_overload(now);
        self.connections.tell_shortage(now);
    }
}
