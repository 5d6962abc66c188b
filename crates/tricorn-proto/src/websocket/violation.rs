//! How a peer breaks the protocol, and with which code it is told so (RFC 6455 section 7.4.1).

/// One variant per rule; `row` says what each means. The connection is to be failed: a Close frame, then the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Violation {
    ReservedBits,
    UnknownOpcode,
    FragmentedControl,
    LongControl,
    NotMasked,
    Masked,
    LengthNotMinimal,
    LengthTooLarge,
    CompressedControl,
    CompressedContinuation,
    NothingToContinue,
    MessageInMessage,
    ShortClose,
    CloseCode,
    CloseReason,
    NotUtf8,
    NotDeflate,
    MessageTooBig,
}

impl Violation {
    /// The status code of the Close frame.
    pub fn code(self) -> u16 {
        row(self).0
    }

    /// For the Close frame and the log; shorter than a control frame.
    pub fn reason(self) -> &'static str {
        row(self).1
    }
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.reason(), self.code())
    }
}

impl std::error::Error for Violation {}

#[rustfmt::skip]
fn row(violation: Violation) -> (u16, &'static str) {
    use Violation::*;
    match violation {
        ReservedBits           => (1002, "reserved bits are set"),
        UnknownOpcode          => (1002, "unknown opcode"),
        FragmentedControl      => (1002, "control frame in fragments"),
        LongControl            => (1002, "control frame of more than 125 bytes"),
        NotMasked              => (1002, "frame of a client without a mask"),
        Masked                 => (1002, "frame of a server with a mask"),
        LengthNotMinimal       => (1002, "length is not written in the shortest form"),
        LengthTooLarge         => (1002, "length of more than 63 bits"),
        CompressedControl      => (1002, "compressed control frame"),
        CompressedContinuation => (1002, "RSV1 on a frame that is not the first one"),
        NothingToContinue      => (1002, "continuation without a message"),
        MessageInMessage       => (1002, "new message before the end of the last one"),
        ShortClose             => (1002, "close frame of one byte"),
        CloseCode              => (1002, "close code that may not be sent"),
        CloseReason            => (1007, "close reason is not UTF-8"),
        NotUtf8                => (1007, "text is not UTF-8"),
        NotDeflate             => (1007, "compressed data is broken"),
        MessageTooBig          => (1009, "message is too big"),
    }
}
