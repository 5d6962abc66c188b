//! Why handshakes of TLS fail.

/// A word of the scoreboard each, from `TlsFailedVersion` on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// No version in common.
    Version,
    /// No cipher suite, group or signature in common.
    Cipher,
    /// None of its protocols (ALPN) is spoken here.
    Protocol,
    /// It asked for no name, or for one that is unknown.
    Name,
    /// Its certificate is missing, or is not accepted.
    Certificate,
    /// It does not accept ours, or says so by another alert.
    Alert,
    /// It speaks plain HTTP.
    Plain,
    /// It speaks something else.
    Garbage,
    /// It has left before the end.
    Left,
    /// It took longer than `tls_handshake_timeout`.
    Timeout,
    /// It was closed for others, which are many.
    Crowded,
    /// A defect of ours, or of the configuration.
    Internal,
}

impl Reason {
    /// In the order of their words.
    pub const ALL: [Reason; 12] = [
        Reason::Version,
        Reason::Cipher,
        Reason::Protocol,
        Reason::Name,
        Reason::Certificate,
        Reason::Alert,
        Reason::Plain,
        Reason::Garbage,
        Reason::Left,
        Reason::Timeout,
        Reason::Crowded,
        Reason::Internal,
    ];

    /// The value of the metric's label.
    pub const fn name(self) -> &'static str {
        match self {
            Reason::Version => "version",
            Reason::Cipher => "cipher",
            Reason::Protocol => "protocol",
            Reason::Name => "name",
            Reason::Certificate => "certificate",
            Reason::Alert => "alert",
            Reason::Plain => "plain",
            Reason::Garbage => "garbage",
            Reason::Left => "left",
            Reason::Timeout => "timeout",
            Reason::Crowded => "crowded",
            Reason::Internal => "internal",
        }
    }
}
