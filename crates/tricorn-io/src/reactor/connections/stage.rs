//! What stands before the requests of a connection, and by what they come.
use crate::config::Config;
use crate::exchange::buffers::Request;
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
    /// Requests come by TLS.
    Secured,
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

    /// Whether the first request is still to be waited for.
    #[inline]
    pub fn is_before_requests(self) -> bool {
        matches!(self, Stage::Header | Stage::Handshake | Stage::Preface)
    }
}
