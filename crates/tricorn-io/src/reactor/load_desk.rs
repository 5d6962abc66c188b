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
