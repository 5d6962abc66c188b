//! What stands before the first request of a connection: a header of the PROXY protocol, if its balancer sends one, then the handshake
//! of TLS (`handshake.rs`), if that is spoken there.
//!
//! Behind such a header the connection has the address of the client that it names, and is trusted as that client is.
use super::conn::Origin;
use crate::config::Config;
use crate::exchange::buffers::Request;
use crate::peer::Peer;
use std::sync::Arc;
use tricorn_proto::message::{Refusal, RefusalKind};
use tricorn_proto::peer::proxy_protocol::{self, Announced, Ends, Opening};

pub(super) enum Opened {
    NeedMore,
    /// The bytes that are left are the first request's. What was announced, if anything was.
    Over(Option<Arc<Announced>>),
}

/// Looks at the first bytes of a connection, and takes out those of a header.
#[cold]
pub(super) fn open(origin: &mut Origin, request: &mut Request, config: &Config) -> Result<Opened, Box<Refusal>> {
    let Some(wanted) = config.proxy_protocol_at(origin.listener) else { return Ok(Opened::Over(None)) };
    match proxy_protocol::open(request.unread(), wanted.accepts)? {
        Opening::NeedMore => Ok(Opened::NeedMore),
        Opening::Absent if wanted.required => {
            let what = "there is none (proxy_protocol_required)";
            Err(Box::new(Refusal::new(RefusalKind::ProxyHeader, what)))
        }
        Opening::Absent => Ok(Opened::Over(None)),
        Opening::Header(..) if !wanted.allow.allows(origin.peer.ip()) => {
            Err(Box::new(Refusal::new(RefusalKind::Forbidden, origin.peer.to_string())))
        }
        Opening::Header(announced, length) => {
            request.take_opening(length);
            if let Ends::Internet { source, .. } = announced.ends {
                origin.peer = Peer::Internet(source);
                origin.trusted = config.policy.trust.allows(Some(source.ip()));
            }
            Ok(Opened::Over(Some(Arc::from(announced))))
        }
    }
}
