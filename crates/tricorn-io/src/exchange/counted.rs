//! Shares of a request in what is bounded for all requests. They are given back with it.
use crate::disk::DiskFile;

#[derive(Debug, Default)]
pub struct Counted {
    /// Memory of an unfinished head (`head_buffer_total`).
    pub head: usize,
    /// Bytes of the body in memory (`body_buffer_total`).
    pub memory: usize,
    /// Bytes of the body on disk, or on their way (`body_disk_total`).
    pub disk: u64,
    /// The body is in a file, which was counted as a descriptor.
    pub has_file: bool,
    /// While the application has a body on disk: the same file, so that it is not closed for good where a thread waits for it.
    pub kept: Option<DiskFile>,
}
