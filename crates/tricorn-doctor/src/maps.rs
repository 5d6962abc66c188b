//! Parses /proc/PID/maps: the files mapped into a process.

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    pub start: u64,
    pub end: u64,
    pub readable: bool,
    pub executable: bool,
    /// Offset in the file.
    pub offset: u64,
    pub file: FileId,
    /// Path of the file. Empty for anonymous memory; in brackets for the kernel's own names.
    pub path: String,
    /// Whether the file was removed or replaced.
    pub deleted: bool,
}

/// Device and inode, which outlive a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileId {
    pub device: (u32, u32),
    pub inode: u64,
}

/// Sorted by address, as the kernel writes them.
#[derive(Debug, Default)]
pub struct Maps(Vec<Mapping>);

impl Maps {
    pub fn parse(text: &str) -> Self {
        Self(text.lines().filter_map(line).collect())
    }

    pub fn find(&self, address: u64) -> Option<&Mapping> {
        let after = self.0.partition_point(|mapping| mapping.start <= address);
        self.0[..after].last().filter(|mapping| address < mapping.end)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Mapping> {
        self.0.iter()
    }

    /// Yields the executable mapping of each file.
    pub fn code(&self) -> impl Iterator<Item = &Mapping> {
        self.0.iter().filter(|mapping| mapping.executable && mapping.is_file())
    }
}

impl Mapping {
    pub fn is_file(&self) -> bool {
        self.path.starts_with('/') && self.file.inode != 0
    }

    pub fn base_name(&self) -> &str {
        base_name(&self.path)
    }
}

pub fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn line(text: &str) -> Option<Mapping> {
    let mut rest = text;
    let mut word = || {
        let (first, others) = rest.trim_start().split_once(' ').unwrap_or((rest.trim_start(), ""));
        rest = others;
        first
    };
    let (start, end) = word().split_once('-')?;
    let rights = word();
    let offset = word();
    let (major, minor) = word().split_once(':')?;
    let inode = word().parse().ok()?;
    let path = rest.trim_start();
    let (path, deleted) = path.strip_suffix(" (deleted)").map_or((path, false), |path| (path, true));
    Some(Mapping {
        start: hex(start)?,
        end: hex(end)?,
        readable: rights.starts_with('r'),
        executable: rights.as_bytes().get(2) == Some(&b'x'),
        offset: hex(offset)?,
        file: FileId { device: (u32::from_str_radix(major, 16).ok()?, u32::from_str_radix(minor, 16).ok()?), inode },
        path: path.to_owned(),
        deleted,
    })
}

fn hex(text: &str) -> Option<u64> {
    u64::from_str_radix(text, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
55d0c0000000-55d0c0001000 r--p 00000000 fe:01 1234                       /usr/bin/python3.11
55d0c0001000-55d0c0002000 r-xp 00001000 fe:01 1234                       /usr/bin/python3.11
7f0000000000-7f0000021000 rw-p 00000000 00:00 0
7f0001000000-7f0001002000 r-xp 00003000 fe:01 77                         /srv/my app/lib x.so (deleted)
7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0                          [stack]
what is this
";

    #[test]
    fn lines_are_read_with_spaces_in_paths_and_files_that_are_gone() {
        let maps = Maps::parse(TEXT);
        assert_eq!(maps.iter().count(), 5);
        let code: Vec<_> =
            maps.code().map(|mapping| (mapping.path.as_str(), mapping.offset, mapping.deleted)).collect();
        assert_eq!(code, [("/usr/bin/python3.11", 0x1000, false), ("/srv/my app/lib x.so", 0x3000, true)]);
        assert_eq!(maps.find(0x7f00_0100_0001).map(Mapping::base_name), Some("lib x.so"));
    }

    #[test]
    fn an_address_between_two_mappings_belongs_to_none() {
        let maps = Maps::parse(TEXT);
        assert!(maps.find(0x7f00_0002_1000).is_none());
        assert!(maps.find(0).is_none());
        assert_eq!(maps.find(0x7ffc_0000_0000).map(|mapping| mapping.path.as_str()), Some("[stack]"));
    }
}
