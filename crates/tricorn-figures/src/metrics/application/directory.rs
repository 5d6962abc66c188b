//! Reading the files of the directory, of which workers may make anything.
//!
//! They are read and not mapped: a mapping of a file that is cut short meanwhile ends the process (SIGBUS). What a worker writes
//! through its own mapping is seen by read(2) at once.
use super::merge::Merged;
use super::values;
use rustix::fs::{FileType, Mode, OFlags, fstat, open};
use rustix::io::read;
use std::io;
use std::path::Path;

/// Most files, most bytes of one, and most bytes of all that are read. A worker has up to fourteen files, of 64 KiB each as
/// long as it has few series.
const FILES: usize = 4096;
const FILE_BYTES: usize = 16 << 20;
const BYTES: usize = 64 << 20;

/// What the files of this directory say together, in the order of their names.
pub fn read_all(directory: &Path) -> Merged {
    let mut merged = Merged::default();
    let Ok(entries) = std::fs::read_dir(directory) else { return merged };
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<_> = names.filter(|name| name.ends_with(".db")).take(FILES).collect();
    names.sort_unstable();
    let mut left = BYTES;
    for name in names {
        match contents(&directory.join(&name), left.min(FILE_BYTES)) {
            Ok(bytes) => {
                left -= bytes.len();
                merged.add(&name, &bytes);
            }
            // A live gauge's is removed when its worker is gone.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(_) => merged.broken += 1,
        }
    }
    merged
}

/// The bytes in use of a file; an error if there are more than `most`, or it is no file.
fn contents(path: &Path, most: usize) -> io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = open(path, flags, Mode::empty())?;
    let stat = fstat(&file)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut bytes = vec![0; HEAD.min(most)];
    let got = read_full(&file, &mut bytes)?;
    bytes.truncate(got);
    let used = values::in_use(&bytes).map_err(|_| io::ErrorKind::InvalidData)?;
    // As much as there is, whatever the file says.
    let used = used.min(usize::try_from(stat.st_size).unwrap_or(0));
    if used > most {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    if used > got {
        bytes.resize(used, 0);
        let more = read_full(&file, &mut bytes[got..])?;
        bytes.truncate(got + more);
    }
    Ok(bytes)
}

fn read_full(file: &rustix::fd::OwnedFd, room: &mut [u8]) -> io::Result<usize> {
    let mut got = 0;
    while got < room.len() {
        match read(file, &mut room[got..]) {
            Ok(0) => break,
            Ok(count) => got += count,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(got)
}

/// Read at first: many files have no more in use.
const HEAD: usize = 4096;

#[cfg(test)]
mod tests {
    use super::super::values::tests::file;
    use super::*;
    use crate::metrics::exposition::Exposition;

    #[test]
    #[cfg_attr(miri, ignore = "directories")]
    fn files_are_read_and_what_is_none_harms_nobody() {
        let directory = std::env::temp_dir().join(format!("tricorn-metrics-{}", std::process::id()));
        std::fs::create_dir(&directory).expect("a directory");
        let put = |name: &str, bytes: &[u8]| std::fs::write(directory.join(name), bytes).expect("a file");
        let keys: Vec<_> = (0..500).map(|at| format!("[\"a\",\"a_total\",{{\"n\":\"{at}\"}},\"h\"]")).collect();
        let values: Vec<_> = keys.iter().map(|key| (key.as_str(), 2.0, 0.0)).collect();
        put("counter_1.db", &file(&values));
        put("counter_2.db", &file(&values[..1]));
        put("counter_3.db", b"");
        put("counter_4.db", &[0xff; 3]);
        put("counter_5.db", &[0x7f; 5000]);
        put("notes.db", b"not ours");
        std::fs::create_dir(directory.join("counter_6.db")).expect("a directory");
        std::os::unix::fs::symlink("counter_1.db", directory.join("counter_7.db")).expect("a link");
        let merged = read_all(&directory);
        let text = merged.render(Exposition::Text);
        std::fs::remove_dir_all(&directory).expect("removed");
        assert_eq!(text.lines().filter(|line| line.ends_with(" 2.0")).count(), 499);
        assert!(text.contains("a_total{n=\"0\"} 4.0\n"));
        assert_eq!((merged.merged, merged.broken), (3, 4), "{text}");
        assert_eq!(read_all(&directory).merged, 0, "a directory that is gone has no files");
    }
}
