//! The complete error responses the server itself gives (gunicorn's HTML page, byte for byte).

/// Appends a complete `Connection: close` response to `out`. `message` is escaped here.
pub fn write(_out: &mut Vec<u8>, _status: u16, _message: &str) {
    todo!()
}

/// The standard reason phrase (RFC 9110), or "Unknown".
pub fn reason(_status: u16) -> &'static str {
    todo!()
}
