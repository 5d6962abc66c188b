//! The arbiter's side of a worker's pipe.
use super::until_some;
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// The arbiter's end of the pipe, and the worker's.
pub fn pipe() -> (File, Option<Arc<OwnedFd>>) {
    let (read, write) = rustix::pipe::pipe().expect("a pipe");
    rustix::io::ioctl_fionbio(&read, true).expect("a pipe");
    (File::from(read), Some(Arc::new(write)))
}

/// What has come so far.
pub struct Ear {
    pipe: File,
    pub heard: String,
}

impl Ear {
    pub fn new(pipe: File) -> Ear {
        Ear { pipe, heard: String::new() }
    }

    pub fn listen(&mut self) -> &str {
        let mut piece = [0u8; 4096];
        while let Ok(count @ 1..) = self.pipe.read(&mut piece) {
            self.heard.push_str(&String::from_utf8_lossy(&piece[..count]));
        }
        &self.heard
    }

    #[track_caller]
    pub fn until_lines(&mut self, count: usize) -> Vec<String> {
        let got = until_some(|| (self.listen().lines().count() >= count).then_some(()));
        assert!(got.is_some(), "less than {count} lines: {:?}", self.heard);
        self.heard.lines().map(str::to_owned).collect()
    }
}
