//! What stands before the requests of a connection, and by what they come.
use crate::config::Config;
use crate::exchange::buffers::Request;
use tricorn_proto::cgi::Protocol;
use tricorn_proto::message::Scheme;

/// How far a connection is on its way to its first request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Stage {
    /// A header may come.
    Header,
    /// The handshake has not come to its end.
    Handshake,
    /// A preface of HTTP/2 may come, or a request.
    Preface,
    /// There is none: the client speaks plain HTTP where TLS is spoken.
    Misplaced,
    /// A front end has come, of which it is not known whether it may.
    Stranger(Protocol),
    /// Requests come by TLS.
    Secured,
    /// Requests come as vars of a front end.
    FrontEnd(Protocol),
    /// Requests come.
    #[default]
    Plain,
}

impl Stage {
    pub fn first(listener: u16, config: &Config) -> Stage {
        if config.proxy_protocol_at(listener).is_some() {
            Stage::Header
        } else {
            Stage::behind_header(listener, config)
        }
    }

    pub fn behind_header(listener: u16, config: &Config) -> Stage {
        if let Some(front_end) = config.front_end_at(listener) {
            return Stage::Stranger(front_end.protocol);
        }
        match &config.http2 {
            _ if config.is_tls_at(listener) => Stage::Handshake,
            Some(http2) if http2.cleartext => Stage::Preface,
            _ => Stage::Plain,
        }
    }

    /// A head came where TLS is spoken. Whether it did not come by TLS; else its scheme is https, unless a front end says something
    /// else.
    #[cold]
    pub fn is_misplaced(self, request: &mut Request) -> bool {
        if self == Stage::Secured && !request.head.scheme_is_told {
            request.head.scheme = Scheme::Https;
        }
        self == Stage::Misplaced
    }

    /// Whether the first request is still to be waited for, or something stands before each.
    #[inline]
    pub fn has_opening(self) -> bool {
        !matches!(self, Stage::Plain | Stage::Secured | Stage::Misplaced)
    }

    /// What a front end speaks here.
    #[inline]
    pub fn front_end(self) -> Option<Protocol> {
        match self {
            Stage::Stranger(protocol) | Stage::FrontEnd(protocol) => Some(protocol),
            _ => None,
        }
    }
}
