//! Forwarded headers: those of front ends are applied, those of other peers are taken out, counted and told of.
use super::conn::Origin;
use crate::clock::{self, SECOND};
use crate::exchange::buffers::Request;
use crate::reactor::chores::Chores;
use crate::scoreboard::{Scoreboard, Word};
use tricorn_proto::message::Refusal;
use tricorn_proto::peer::ProxyPolicy;

/// What the log was not told yet.
#[derive(Debug, Default)]
pub(super) struct Proxied {
    requests: u64,
    /// When it was told last (monotonic nanoseconds).
    told: u64,
}

impl Proxied {
    /// Of a complete head, before its body.
    #[cold]
    pub fn believe(
        &mut self,
        request: &mut Request,
        origin: Origin,
        policy: &ProxyPolicy,
        board: Scoreboard,
        chores: &mut Chores,
    ) -> Result<(), Box<Refusal>> {
        let removed = request.believe(policy, origin.trusted)?;
        if removed > 0 && !origin.trusted {
            board.add(Word::Unforwarded, 1);
            self.requests += 1;
            let now = clock::now();
            if self.told == 0 || now.saturating_sub(self.told) >= MINUTE {
                self.told = now;
                let count = std::mem::take(&mut self.requests);
                let peer = origin.peer;
                chores.notice(true, || {
                    format!(
                        "Removed forwarded headers from peers that are not in forwarded_allow_ips: requests: \
                         {count}, the last from ip={peer}"
                    )
                });
            }
        }
        Ok(())
    }
}

const MINUTE: u64 = 60 * SECOND;
