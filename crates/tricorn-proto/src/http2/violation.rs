//! How a peer breaks the protocol: which rule, whether its stream or its connection ends, and with which code.
use super::error_code::ErrorCode;

/// What ends because of a violation (RFC 9113 section 5.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    Connection,
    Stream,
}

/// One variant per rule; `row` says what each means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Violation {
    // The connection ends.
    Preface,
    SettingsExpected,
    FrameTooLarge,
    FrameLength,
    StreamZero,
    NotStreamZero,
    Padding,
    EvenStream,
    IdleStream,
    StreamOrder,
    AfterEnd,
    Interleaved,
    NothingToContinue,
    Compression,
    PushPromise,
    SettingValue,
    SettingWindow,
    ConnectionIncrement,
    ConnectionWindow,
    ConnectionFlow,
    PriorityTarget,
    // The peer wants the server to be busy.
    Resets,
    ControlFrames,
    Continuations,
    HeaderBlock,
    Overhead,
    HeaderTimeout,
    SettingsTimeout,
    // The stream ends.
    StreamIncrement,
    StreamWindow,
    StreamFlow,
    StreamClosed,
    PriorityLength,
    SelfDependency,
    TooManyStreams,
    TrailersOpen,
    TrailersTooLarge,
    TrailerField,
    FieldName,
    FieldValue,
    ConnectionField,
    TeField,
    PseudoUnknown,
    PseudoOrder,
    PseudoTwice,
    PseudoMissing,
    PseudoTrailer,
    Path,
    SchemeName,
    Authority,
    HostMismatch,
    ConnectForm,
    ContentLength,
}

impl Violation {
    pub fn scope(self) -> Scope {
        row(self).0
    }

    /// The code of the RST_STREAM or GOAWAY frame.
    pub fn code(self) -> ErrorCode {
        row(self).1
    }

    /// The section of the RFC that has the rule, or the kind of attack.
    pub fn section(self) -> &'static str {
        row(self).2
    }

    /// For the log and the debug data of GOAWAY.
    pub fn reason(self) -> &'static str {
        row(self).3
    }
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.reason(), self.section())
    }
}

impl std::error::Error for Violation {}

#[rustfmt::skip]
fn row(violation: Violation) -> (Scope, ErrorCode, &'static str, &'static str) {
    use {ErrorCode as Code, Scope::*, Violation::*};
    match violation {
        Preface             => (Connection, Code::ProtocolError, "RFC 9113 section 3.4", "invalid connection preface"),
        SettingsExpected    => (Connection, Code::ProtocolError, "RFC 9113 section 3.4", "first frame is not SETTINGS"),
        FrameTooLarge       => (Connection, Code::FrameSizeError, "RFC 9113 section 4.2", "frame larger than SETTINGS_MAX_FRAME_SIZE"),
        FrameLength         => (Connection, Code::FrameSizeError, "RFC 9113 section 4.2", "wrong frame length for its type"),
        StreamZero          => (Connection, Code::ProtocolError, "RFC 9113 section 5.1.1", "frame of a stream on stream 0"),
        NotStreamZero       => (Connection, Code::ProtocolError, "RFC 9113 section 5.1.1", "frame of the connection on a stream"),
        Padding             => (Connection, Code::ProtocolError, "RFC 9113 section 6.1", "padding longer than the payload"),
        EvenStream          => (Connection, Code::ProtocolError, "RFC 9113 section 5.1.1", "even stream identifier from a client"),
        IdleStream          => (Connection, Code::ProtocolError, "RFC 9113 section 5.1", "frame on an idle stream"),
        StreamOrder         => (Connection, Code::ProtocolError, "RFC 9113 section 5.1.1", "stream identifier is not larger than the last one"),
        AfterEnd            => (Connection, Code::StreamClosed, "RFC 9113 section 5.1", "frame on a closed stream"),
        Interleaved         => (Connection, Code::ProtocolError, "RFC 9113 section 4.3", "frame inside a header block"),
        NothingToContinue   => (Connection, Code::ProtocolError, "RFC 9113 section 6.10", "CONTINUATION outside a header block"),
        Compression         => (Connection, Code::CompressionError, "RFC 9113 section 4.3", "header block cannot be decoded"),
        PushPromise         => (Connection, Code::ProtocolError, "RFC 9113 section 8.4", "PUSH_PROMISE from a client"),
        SettingValue        => (Connection, Code::ProtocolError, "RFC 9113 section 6.5.2", "invalid setting"),
        SettingWindow       => (Connection, Code::FlowControlError, "RFC 9113 section 6.5.2", "SETTINGS_INITIAL_WINDOW_SIZE too large"),
        ConnectionIncrement => (Connection, Code::ProtocolError, "RFC 9113 section 6.9", "WINDOW_UPDATE of 0 on the connection"),
        ConnectionWindow    => (Connection, Code::FlowControlError, "RFC 9113 section 6.9.1", "flow-control window too large"),
        ConnectionFlow      => (Connection, Code::FlowControlError, "RFC 9113 section 6.9", "DATA beyond the window of the connection"),
        PriorityTarget      => (Connection, Code::ProtocolError, "RFC 9218 section 7.1", "PRIORITY_UPDATE for stream 0 or an even stream"),
        Resets              => (Connection, Code::EnhanceYourCalm, "CVE-2023-44487, CVE-2025-8671", "too_many_resets"),
        ControlFrames       => (Connection, Code::EnhanceYourCalm, "CVE-2019-9512, CVE-2019-9515, CVE-2019-9518", "too_many_control_frames"),
        Continuations       => (Connection, Code::EnhanceYourCalm, "CVE-2024-27316", "too_many_continuations"),
        HeaderBlock         => (Connection, Code::EnhanceYourCalm, "RFC 9113 section 10.5.1", "header block too large"),
        Overhead            => (Connection, Code::EnhanceYourCalm, "RFC 9113 section 10.5", "too many bytes without payload"),
        HeaderTimeout       => (Connection, Code::EnhanceYourCalm, "RFC 9113 section 10.5", "header block did not come in time"),
        SettingsTimeout     => (Connection, Code::SettingsTimeout, "RFC 9113 section 6.5.3", "SETTINGS not acknowledged in time"),
        StreamIncrement     => (Stream, Code::ProtocolError, "RFC 9113 section 6.9", "WINDOW_UPDATE of 0"),
        StreamWindow        => (Stream, Code::FlowControlError, "RFC 9113 section 6.9.1", "flow-control window too large"),
        StreamFlow          => (Stream, Code::FlowControlError, "RFC 9113 section 6.9", "DATA beyond the window of the stream"),
        StreamClosed        => (Stream, Code::StreamClosed, "RFC 9113 section 5.1", "frame after the end of the request"),
        PriorityLength      => (Stream, Code::FrameSizeError, "RFC 9113 section 6.3", "PRIORITY frame is not 5 bytes long"),
        SelfDependency      => (Stream, Code::ProtocolError, "RFC 7540 section 5.3.1", "stream depends on itself"),
        TooManyStreams      => (Stream, Code::RefusedStream, "RFC 9113 section 5.1.2", "more streams than SETTINGS_MAX_CONCURRENT_STREAMS"),
        TrailersOpen        => (Stream, Code::ProtocolError, "RFC 9113 section 8.1", "second HEADERS frame without END_STREAM"),
        TrailersTooLarge    => (Stream, Code::EnhanceYourCalm, "RFC 9113 section 10.5.1", "trailers too large"),
        TrailerField        => (Stream, Code::ProtocolError, "RFC 9110 section 6.5.1", "field that may not be a trailer"),
        FieldName           => (Stream, Code::ProtocolError, "RFC 9113 section 8.2.1", "invalid field name"),
        FieldValue          => (Stream, Code::ProtocolError, "RFC 9113 section 8.2.1", "invalid field value"),
        ConnectionField     => (Stream, Code::ProtocolError, "RFC 9113 section 8.2.2", "connection-specific field"),
        TeField             => (Stream, Code::ProtocolError, "RFC 9113 section 8.2.2", "te other than trailers"),
        PseudoUnknown       => (Stream, Code::ProtocolError, "RFC 9113 section 8.3", "unknown pseudo-header field"),
        PseudoOrder         => (Stream, Code::ProtocolError, "RFC 9113 section 8.3", "pseudo-header field after a regular field"),
        PseudoTwice         => (Stream, Code::ProtocolError, "RFC 9113 section 8.3", "repeated pseudo-header field"),
        PseudoMissing       => (Stream, Code::ProtocolError, "RFC 9113 section 8.3.1", "missing pseudo-header field"),
        PseudoTrailer       => (Stream, Code::ProtocolError, "RFC 9113 section 8.1", "pseudo-header field in trailers"),
        Path                => (Stream, Code::ProtocolError, "RFC 9113 section 8.3.1", "invalid :path"),
        SchemeName          => (Stream, Code::ProtocolError, "RFC 9113 section 8.3.1", "invalid :scheme"),
        Authority           => (Stream, Code::ProtocolError, "RFC 9113 section 8.3.1", "invalid :authority"),
        HostMismatch        => (Stream, Code::ProtocolError, "RFC 9113 section 8.3.1", "Host differs from :authority"),
        ConnectForm         => (Stream, Code::ProtocolError, "RFC 9113 section 8.5, RFC 8441 section 4", "invalid CONNECT request"),
        ContentLength       => (Stream, Code::ProtocolError, "RFC 9113 section 8.1.1", "content-length differs from the DATA received"),
    }
}
