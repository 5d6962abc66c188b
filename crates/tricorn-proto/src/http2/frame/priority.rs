//! PRIORITY (RFC 9113 section 6.3): deprecated, and ignored but for what makes it invalid.

/// Octets of the dependency and its weight.
pub(crate) const DEPENDENCY: usize = 5;

/// The stream that a dependency names.
pub(crate) fn depends_on(payload: &[u8; DEPENDENCY]) -> u32 {
    let [stream @ .., _weight] = *payload;
    u32::from_be_bytes(stream) & (u32::MAX >> 1)
}
