//! The settings of both sides (RFC 9113 section 6.5.2).
use super::budget::Rate;
use super::flow::{DEFAULT_WINDOW, MAX_WINDOW};
use super::frame::MAX_PAYLOAD;
use super::frame::settings::*;
use super::hpack::MAX_TABLE;
use super::violation::Violation;

/// Ours: limits and budgets. One per process, immutable.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Most streams at a time, calls of reset ones included.
    pub max_concurrent_streams: u32,
    /// Bytes of all names and values of a head, and 32 for each field.
    pub max_header_list_size: u32,
    /// First window of a stream.
    pub initial_window: u32,
    /// Largest window of a stream.
    pub max_window: u32,
    pub connection_window: u32,
    /// RFC 8441: whether CONNECT may name a protocol.
    pub connect_protocol: bool,
    /// RST_STREAM of either side.
    pub resets: Rate,
    /// Frames that carry nothing of a request.
    pub control_frames: Rate,
    /// Milliseconds for the preface, for a header block, and for the acknowledgement of our settings.
    pub header_timeout: u64,
    /// Milliseconds between the two GOAWAY frames of a shutdown, at most.
    pub last_call: u64,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            max_concurrent_streams: 100,
            max_header_list_size: 65_536,
            initial_window: DEFAULT_WINDOW,
            max_window: 1 << 20,
            connection_window: 1 << 20,
            connect_protocol: false,
            resets: Rate { burst: 200, per_second: 20 },
            control_frames: Rate { burst: 1000, per_second: 100 },
            header_timeout: 10_000,
            last_call: 1000,
        }
    }
}

impl Settings {
    /// Appends the SETTINGS frame.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let pairs = [
            (MAX_CONCURRENT_STREAMS, self.max_concurrent_streams),
            (INITIAL_WINDOW_SIZE, self.initial_window),
            (MAX_HEADER_LIST_SIZE, self.max_header_list_size),
            (NO_RFC7540_PRIORITIES, 1),
            (ENABLE_CONNECT_PROTOCOL, u32::from(self.connect_protocol)),
        ];
        write(&pairs, out);
    }

    /// The longest header block that is collected.
    pub(super) fn max_block(&self) -> usize {
        self.max_header_list_size as usize + MAX_PAYLOAD
    }
}

/// The peer's, as far as they concern a server that pushes nothing, or a client.
#[derive(Debug, Clone, Copy)]
pub struct PeerSettings {
    pub header_table_size: u32,
    pub initial_window: u32,
    /// Streams that a client may have at a time. Section 6.5.2: "Initially, there is no limit to this value."
    pub max_concurrent_streams: u32,
    /// RFC 9218 section 2.1: the value "MUST NOT change" after the first SETTINGS frame.
    priorities: Option<u32>,
}

impl Default for PeerSettings {
    fn default() -> PeerSettings {
        PeerSettings {
            header_table_size: MAX_TABLE as u32,
            initial_window: DEFAULT_WINDOW,
            max_concurrent_streams: u32::MAX,
            priorities: None,
        }
    }
}

impl PeerSettings {
    pub fn apply(&mut self, identifier: u16, value: u32) -> Result<(), Violation> {
        match (identifier, value) {
            (HEADER_TABLE_SIZE, size) => self.header_table_size = size,
            (INITIAL_WINDOW_SIZE, size) if i64::from(size) > MAX_WINDOW => return Err(Violation::SettingWindow),
            (INITIAL_WINDOW_SIZE, size) => self.initial_window = size,
            (MAX_CONCURRENT_STREAMS, count) => self.max_concurrent_streams = count,
            (MAX_FRAME_SIZE, ..16_384 | 0x100_0000..) => return Err(Violation::SettingValue),
            (ENABLE_PUSH | ENABLE_CONNECT_PROTOCOL | NO_RFC7540_PRIORITIES, 2..) => {
                return Err(Violation::SettingValue);
            }
            (NO_RFC7540_PRIORITIES, value) if self.priorities.is_some_and(|before| before != value) => {
                return Err(Violation::SettingValue);
            }
            (NO_RFC7540_PRIORITIES, value) => self.priorities = Some(value),
            // Section 6.5.2: "An endpoint that receives a SETTINGS frame with any unknown or unsupported identifier MUST
            // ignore that setting." Frames of ours are never larger than 16,384 bytes, and nothing is pushed.
            _ => {}
        }
        Ok(())
    }

    /// The first SETTINGS frame has come; without a word on priorities their value is 0.
    pub fn complete(&mut self) {
        self.priorities.get_or_insert(0);
    }
}
