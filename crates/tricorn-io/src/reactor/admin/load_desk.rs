//! What this worker tells of the load: at admin connections, and in responses to trusted peers.
use crate::clock::SECOND;
use crate::config::Config;
use crate::exchange::responses::ToldLoad;
use crate::metrics::load::{self, Report, Rules, Scene};
use crate::one_queue::siblings::Pages;
use crate::scoreboard::Scoreboard;
use crate::scoreboard::group::Group;
use std::sync::{Arc, OnceLock};
use tricorn_proto::message::FieldList;

#[derive(Debug)]
pub(super) struct LoadDesk {
    rules: Rules,
    /// The fields that every response has. The report is told beside them; `None`: it is not.
    standing: Option<FieldList>,
    /// Where responses find the same with the report of this second.
    told: Arc<ToldLoad>,
    /// When that is to be made anew; `u64::MAX`: never.
    stale_at: u64,
    /// What a worker remembers that is alone.
    alone: OnceLock<Group>,
}

/// Envoy and gRPC read the report in it.
const FIELD: &[u8] = b"endpoint-load-metrics";

impl LoadDesk {
    pub fn new(config: &Config, told: Arc<ToldLoad>) -> LoadDesk {
        let rules = Rules { hub: config.hub, queue_limit: config.queue_limit, queue_timeout: config.queue_timeout };
        let standing = config.load_report.then(|| config.standing_fields.clone());
        let stale_at = if config.load_report { 0 } else { u64::MAX };
        LoadDesk { rules, standing, told, stale_at, alone: OnceLock::new() }
    }

    pub fn report(&self, pages: Option<&Pages>, own: Scoreboard, now: u64) -> Report {
        let group = pages.map_or_else(|| *self.alone.get_or_init(Group::private), Pages::group);
        let (own, ledger) = ([own], pages.and_then(Pages::ledger));
        load::look(&Scene { pages: pages.map_or(&own, Pages::used), ledger, group, now }, self.rules)
    }

    #[inline]
    pub fn is_stale(&self, now: u64) -> bool {
        now >= self.stale_at
    }

    /// Responses tell this from now on.
    #[cold]
    pub fn tell(&mut self, report: &Report, now: u64) {
        self.stale_at = now + SECOND;
        self.told.tell(self.standing.as_ref().zip(load::orca(report)).map(|(standing, text)| {
            let mut fields = standing.clone();
            fields.push(FIELD, text.as_bytes());
            Arc::new(fields)
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::load::Report;
    use crate::scoreboard::{State, Word};

    fn desk(standing: Option<FieldList>) -> LoadDesk {
        LoadDesk {
            rules: Rules { hub: false, queue_limit: 0, queue_timeout: 0 },
            stale_at: if standing.is_some() { 0 } else { u64::MAX },
            standing,
            told: Arc::default(),
            alone: OnceLock::new(),
        }
    }

    /// Two reports, of a worker that was busy in between.
    fn reports(desk: &LoadDesk) -> [Report; 2] {
        let page = Scoreboard::private(1);
        page.begin(1);
        page.state(State::Serving);
        let first = desk.report(None, page, SECOND);
        page.add(Word::Requests, 20);
        page.observe(crate::scoreboard::APP_TIME, SECOND);
        [first, desk.report(None, page, 3 * SECOND)]
    }

    #[test]
    fn it_is_told_beside_what_every_response_has_and_anew_after_a_second() {
        let mut desk = desk(Some(FieldList::from_iter([(b"x-standing".as_slice(), b"1".as_slice())])));
        let [idle, busy] = reports(&desk);
        assert!(desk.is_stale(1));
        desk.tell(&idle, 1);
        assert!(desk.told.fields().is_none(), "there is nothing to tell");
        assert!(!desk.is_stale(SECOND) && desk.is_stale(SECOND + 1));
        desk.tell(&busy, SECOND + 1);
        let fields = desk.told.fields().expect("fields");
        let text = b"TEXT application_utilization=0.5000,rps_fractional=10.00".as_slice();
        assert!(fields.iter().eq([(b"x-standing".as_slice(), b"1".as_slice()), (FIELD, text)]), "{fields:?}");
    }

    #[test]
    fn without_the_setting_it_is_never_told() {
        let mut desk = desk(None);
        assert!(!desk.is_stale(u64::MAX - 1));
        let [_, busy] = reports(&desk);
        desk.tell(&busy, 1);
        assert!(desk.told.fields().is_none());
    }
}
