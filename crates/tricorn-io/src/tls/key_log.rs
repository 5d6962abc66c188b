//! Secrets of sessions in a file, in the format that Wireshark reads (`SSLKEYLOGFILE`).
use rustls::KeyLog;
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

#[derive(Debug)]
pub struct KeyLogFile(Mutex<File>);

impl KeyLogFile {
    /// Only its owner may read it.
    pub fn open(path: &Path) -> std::io::Result<KeyLogFile> {
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
        Ok(KeyLogFile(Mutex::new(file)))
    }
}

impl KeyLog for KeyLogFile {
    /// What does not fit the disk is lost: it is for looking on only.
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        let mut line = String::from(label);
        for bytes in [client_random, secret] {
            line.push(' ');
            bytes.iter().for_each(|byte| {
                let _ = write!(line, "{byte:02x}");
            });
        }
        line.push('\n');
        let _ = self.0.lock().unwrap_or_else(PoisonError::into_inner).write_all(line.as_bytes());
    }
}
