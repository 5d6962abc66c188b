//! Reads the memory of this or another process without stopping it.
//!
//! process_vm_readv(2) first; pread of /proc/PID/mem where a seccomp profile forbids that call; of our own memory, write(2) into a
//! pipe where a process that has changed its user may not open that file either. All of them copy in the kernel, so that an
//! address that is no longer mapped is an error and never a fault of ours.
use crate::trouble::Trouble;
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::pipe::{PipeFlags, pipe_with};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

pub struct Memory {
    pid: u32,
    way: Way,
}

enum Way {
    Call,
    File(File),
    Pipe(Pipe),
}

/// What is written into it is a copy of our own memory, and is read back at once.
struct Pipe {
    reader: OwnedFd,
    writer: OwnedFd,
}

impl Memory {
    /// Opens the memory of a process. `probe` is an address that is mapped and readable.
    pub fn open(pid: u32, probe: u64) -> Result<Self, Trouble> {
        let called = Self { pid, way: Way::Call };
        let mut byte = [0];
        let error = match called.try_read(probe, &mut byte) {
            Ok(_) => return Ok(called),
            Err(error) => error,
        };
        let opened = File::open(format!("/proc/{pid}/mem")).map(|file| Self { pid, way: Way::File(file) });
        let other = match opened.and_then(|memory| memory.try_read(probe, &mut byte).map(|_| memory)) {
            Ok(memory) => return Ok(memory),
            Err(other) => other,
        };
        let own = (pid == std::process::id()).then(Pipe::make).and_then(Result::ok);
        own.map(|pipe| Self { pid, way: Way::Pipe(pipe) })
            .filter(|memory| memory.try_read(probe, &mut byte).is_ok())
            .ok_or_else(|| Trouble::memory(pid, &error, &other))
    }

    /// Returns the name of the method in use, for reports.
    pub fn way(&self) -> &'static str {
        match self.way {
            Way::Call => "process_vm_readv",
            Way::File(_) => "/proc/PID/mem",
            Way::Pipe(_) => "a pipe",
        }
    }

    /// Fills all of `into`, or none of it.
    pub fn read(&self, address: u64, into: &mut [u8]) -> Option<()> {
        (self.try_read(address, into).ok()? == into.len()).then_some(())
    }

    /// Reads what is mapped from `address` on, up to `most` bytes.
    pub fn up_to(&self, address: u64, most: usize) -> Vec<u8> {
        let mut bytes = vec![0; most];
        let length = self.try_read(address, &mut bytes).unwrap_or(0);
        bytes.truncate(length);
        bytes
    }

    pub fn bytes<const LENGTH: usize>(&self, address: u64) -> Option<[u8; LENGTH]> {
        let mut bytes = [0; LENGTH];
        self.read(address, &mut bytes)?;
        Some(bytes)
    }

    pub fn word(&self, address: u64) -> Option<u64> {
        self.bytes(address).map(u64::from_ne_bytes)
    }

    pub fn int(&self, address: u64) -> Option<i32> {
        self.bytes(address).map(i32::from_ne_bytes)
    }

    fn try_read(&self, address: u64, into: &mut [u8]) -> io::Result<usize> {
        match &self.way {
            Way::Call => read_by_call(self.pid, address, into),
            Way::File(file) => file.read_at(into, address),
            Way::Pipe(pipe) => pipe.read(address, into),
        }
    }
}

impl Pipe {
    /// Neither end waits, so that a pipe that holds less than usual is no trap.
    fn make() -> io::Result<Self> {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        Ok(Self { reader, writer })
    }

    /// As much as is mapped; an error if that is nothing.
    fn read(&self, address: u64, into: &mut [u8]) -> io::Result<usize> {
        let mut done = 0;
        while done < into.len() {
            let from = usize::try_from(address + done as u64).map_err(|_| io::ErrorKind::InvalidInput)?;
            let from: *const libc::c_void = std::ptr::without_provenance(from);
            let length = (into.len() - done).min(MOST_PIECE);
            // SAFETY: the kernel checks the range, and copies from it or says EFAULT; nothing of ours is written to.
            let written = unsafe { libc::write(self.writer.as_raw_fd(), from, length) };
            match usize::try_from(written) {
                Ok(written @ 1..) => self.take(&mut into[done..done + written])?,
                _ if done > 0 => break,
                _ => return Err(io::Error::last_os_error()),
            }
            done += usize::try_from(written).unwrap_or(0);
        }
        Ok(done)
    }

    /// What was just written, wholly: what is left over would be taken for what comes next.
    fn take(&self, mut into: &mut [u8]) -> io::Result<()> {
        while !into.is_empty() {
            let count = rustix::io::retry_on_intr(|| rustix::io::read(&self.reader, &mut *into))?;
            into = &mut into[count..];
        }
        Ok(())
    }
}

/// What a pipe holds as a rule. One that holds less takes a part.
const MOST_PIECE: usize = 64 << 10;

fn read_by_call(pid: u32, address: u64, into: &mut [u8]) -> io::Result<usize> {
    let (Ok(pid), Ok(start)) = (libc::pid_t::try_from(pid), usize::try_from(address)) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let remote = libc::iovec { iov_base: std::ptr::without_provenance_mut(start), iov_len: into.len() };
    // SAFETY: `local` is the slice that was given; the kernel checks the remote range and copies.
    let length = unsafe { libc::process_vm_readv(pid, &raw const local, 1, &raw const remote, 1, 0) };
    usize::try_from(length).map_err(|_| io::Error::last_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_ways_read_the_same_and_refuse_what_is_not_mapped() {
        let value = [7_u64, 8, 9];
        let address = value.as_ptr() as u64;
        let pid = std::process::id();
        let file = File::open("/proc/self/mem").expect("readable");
        let pipe = Pipe::make().expect("a pipe");
        for way in [Way::Call, Way::File(file), Way::Pipe(pipe)] {
            let memory = Memory { pid, way };
            assert_eq!(memory.word(address + 8), Some(8), "{}", memory.way());
            assert_eq!(memory.word(16), None, "{}", memory.way());
            assert!(memory.up_to(16, 64).is_empty());
            assert_eq!(memory.up_to(address, 24).len(), 24);
            let large: Vec<u8> = (0..200_000_u32).map(|number| number as u8).collect();
            assert_eq!(memory.up_to(large.as_ptr() as u64, large.len()), large, "{}", memory.way());
        }
    }

    #[test]
    fn a_process_that_does_not_exist_is_told() {
        let trouble = Memory::open(0x7fff_fff0, 4096).err().expect("no such process");
        assert!(trouble.to_string().contains("memory"), "{trouble}");
    }
}
