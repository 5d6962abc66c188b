//! Error codes of RST_STREAM and GOAWAY (RFC 9113 section 7).

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum ErrorCode {
    NoError = 0x0,
    ProtocolError = 0x1,
    InternalError = 0x2,
    FlowControlError = 0x3,
    SettingsTimeout = 0x4,
    StreamClosed = 0x5,
    FrameSizeError = 0x6,
    RefusedStream = 0x7,
    Cancel = 0x8,
    CompressionError = 0x9,
    ConnectError = 0xa,
    EnhanceYourCalm = 0xb,
    InadequateSecurity = 0xc,
    Http11Required = 0xd,
}

impl ErrorCode {
    /// The number on the wire.
    pub fn number(self) -> u32 {
        self as u32
    }

    /// The registered code of a number.
    pub fn from_number(number: u32) -> Option<ErrorCode> {
        NAMES.iter().find(|(code, _)| code.number() == number).map(|(code, _)| *code)
    }

    /// As the RFC has it.
    pub fn name(self) -> &'static str {
        NAMES[self as usize].1
    }
}

#[rustfmt::skip]
const NAMES: [(ErrorCode, &str); 14] = [
    (ErrorCode::NoError,            "NO_ERROR"),
    (ErrorCode::ProtocolError,      "PROTOCOL_ERROR"),
    (ErrorCode::InternalError,      "INTERNAL_ERROR"),
    (ErrorCode::FlowControlError,   "FLOW_CONTROL_ERROR"),
    (ErrorCode::SettingsTimeout,    "SETTINGS_TIMEOUT"),
    (ErrorCode::StreamClosed,       "STREAM_CLOSED"),
    (ErrorCode::FrameSizeError,     "FRAME_SIZE_ERROR"),
    (ErrorCode::RefusedStream,      "REFUSED_STREAM"),
    (ErrorCode::Cancel,             "CANCEL"),
    (ErrorCode::CompressionError,   "COMPRESSION_ERROR"),
    (ErrorCode::ConnectError,       "CONNECT_ERROR"),
    (ErrorCode::EnhanceYourCalm,    "ENHANCE_YOUR_CALM"),
    (ErrorCode::InadequateSecurity, "INADEQUATE_SECURITY"),
    (ErrorCode::Http11Required,     "HTTP_1_1_REQUIRED"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_has_its_name() {
        for number in 0..14 {
            let code = ErrorCode::from_number(number).unwrap();
            let plain = code.name().replace('_', "");
            assert_eq!((code.number(), plain), (number, format!("{code:?}").to_uppercase()));
        }
        assert_eq!(ErrorCode::from_number(14), None);
    }
}
