//! Looks a file up: a regular one that lies beneath the directory, the form of it that the client accepts best, and what is told of it.
use super::beneath::{open_beneath, open_root};
use super::map::{Mapping, Wanted};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{FileType, OFlags, Stat, fstat};
use rustix::io::{Errno, Result};
use tricorn_proto::message::coding::{Accepted, Choice, Coding};
use tricorn_proto::representation::{MediaType, media_type};

pub(crate) use super::beneath::How;

/// The forms of a file that may lie beside it, the best first.
const PREFERENCE: [Coding; 3] = [Coding::Brotli, Coding::Zstd, Coding::Gzip];

/// A file that is to be sent.
#[derive(Debug)]
pub(crate) struct Found {
    pub file: OwnedFd,
    pub length: u64,
    /// In nanoseconds since 1970.
    pub modified: i128,
    pub media: MediaType,
    /// It is a precompressed form of what was asked for.
    pub coding: Option<Coding>,
    /// Which form is sent depends on Accept-Encoding.
    pub varies: bool,
}

/// What there is at a path.
#[derive(Debug)]
pub(crate) enum Lookup {
    File(Found),
    /// A directory with an index, whose path is to end with a slash.
    Directory,
    /// Nothing that is sent.
    Missing,
    /// Something that is not sent to anybody: it lies elsewhere, or is no regular file.
    Refused,
    /// It could not be opened.
    Failed(Errno),
    /// Only a disk knows ([`How::Cached`]).
    Unknown,
}

/// Looks up what a request wants.
pub(crate) fn look_up(mapping: &Mapping, wanted: &Wanted, accepted: &Accepted, how: How) -> Lookup {
    find(mapping, wanted, accepted, how).unwrap_or_else(|error| match error {
        Errno::AGAIN if how == How::Cached => Lookup::Unknown,
        Errno::NOENT | Errno::NOTDIR | Errno::NAMETOOLONG => Lookup::Missing,
        // A link that leads elsewhere, or in circles; a device without a driver.
        Errno::XDEV | Errno::LOOP | Errno::NXIO | Errno::NODEV => Lookup::Refused,
        error => Lookup::Failed(error),
    })
}

fn find(mapping: &Mapping, wanted: &Wanted, accepted: &Accepted, how: How) -> Result<Lookup> {
    let root = open_root(&mapping.directory, how)?;
    let root = root.as_fd();
    let path: &[u8] = if wanted.path.is_empty() { b"." } else { &wanted.path };
    // With O_PATH nothing happens to what it is: a FIFO has no reader by that, a device is not started.
    let stat = fstat(open_beneath(root, path, OFlags::PATH, how)?)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile if wanted.is_directory => Ok(Lookup::Missing),
        FileType::RegularFile => send(root, path, &stat, accepted, how),
        FileType::Directory if mapping.index.is_empty() => Ok(Lookup::Missing),
        FileType::Directory => {
            let index = [path, b"/", &mapping.index].concat();
            let stat = fstat(open_beneath(root, &index, OFlags::PATH, how)?)?;
            if !is_regular(&stat) {
                return Ok(Lookup::Missing);
            }
            if wanted.is_directory { send(root, &index, &stat, accepted, how) } else { Ok(Lookup::Directory) }
        }
        _ => Ok(Lookup::Refused),
    }
}

/// Opens a regular file to be read, or its form that is sent in its place.
fn send(root: BorrowedFd<'_>, path: &[u8], stat: &Stat, accepted: &Accepted, how: How) -> Result<Lookup> {
    let media = media_type(path);
    let mut beside = Vec::new();
    if media.is_compressible {
        for coding in PREFERENCE {
            let other = [path, coding.suffix().as_bytes()].concat();
            if is_form_of(stat, root, &other, how)? {
                beside.push(coding);
            }
        }
    }
    let varies = !beside.is_empty();
    if let Choice::Coded(coding) = accepted.choose(&beside) {
        let other = [path, coding.suffix().as_bytes()].concat();
        // It may be gone by now.
        if let Some((file, stat)) = open_regular(root, &other, how)? {
            return Ok(Lookup::File(Found { coding: Some(coding), varies, ..found(file, &stat, media) }));
        }
    }
    Ok(match open_regular(root, path, how)? {
        Some((file, stat)) => Lookup::File(Found { varies, ..found(file, &stat, media) }),
        None => Lookup::Refused,
    })
}

fn found(file: OwnedFd, stat: &Stat, media: MediaType) -> Found {
    Found { file, length: stat.st_size as u64, modified: modified(stat), media, coding: None, varies: false }
}

/// Whether there is a file with this name that is not older than the one it stands for.
fn is_form_of(stat: &Stat, root: BorrowedFd<'_>, path: &[u8], how: How) -> Result<bool> {
    match open_beneath(root, path, OFlags::PATH, how) {
        Ok(file) => {
            let other = fstat(file)?;
            Ok(is_regular(&other) && modified(&other) >= modified(stat))
        }
        Err(Errno::AGAIN) if how == How::Cached => Err(Errno::AGAIN),
        // Whatever is wrong with it, the file itself is there.
        Err(_) => Ok(false),
    }
}

/// Opens a file that was a regular one a moment ago. `None`: it is not any more.
fn open_regular(root: BorrowedFd<'_>, path: &[u8], how: How) -> Result<Option<(OwnedFd, Stat)>> {
    let file = open_beneath(root, path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY, how)?;
    let stat = fstat(&file)?;
    Ok(is_regular(&stat).then_some((file, stat)))
}

fn is_regular(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode).is_file()
}

fn modified(stat: &Stat) -> i128 {
    i128::from(stat.st_mtime) * 1_000_000_000 + i128::from(stat.st_mtime_nsec)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, Mode, mkfifoat};
    use std::fs::{self, File};
    use std::path::{Path, PathBuf};
    use std::time::{Duration, SystemTime};

    struct Tree {
        top: PathBuf,
        mapping: Mapping,
    }

    impl Tree {
        fn new(name: &str) -> Tree {
            let top = std::env::temp_dir().join(format!("tricorn-lookup-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&top);
            fs::create_dir_all(top.join("sub")).expect("directories");
            let mapping = Mapping { directory: top.clone(), index: b"index.html".to_vec(), ..Mapping::default() };
            Tree { top, mapping }
        }

        fn write(&self, path: &str, content: &str, age: u64) -> &Tree {
            let file = self.top.join(path);
            fs::write(&file, content).expect("a file");
            let time = SystemTime::now() - Duration::from_secs(age);
            File::options().write(true).open(file).and_then(|file| file.set_modified(time)).expect("a file");
            self
        }

        fn look(&self, path: &str, accept: &str) -> Lookup {
            let path_of = |text: &str| text.strip_suffix('/').unwrap_or(text).as_bytes().to_vec();
            let wanted =
                Wanted { mapping: 0, path: path_of(path), is_directory: path.ends_with('/') || path.is_empty() };
            look_up(&self.mapping, &wanted, &Accepted::of([accept.as_bytes()].into_iter()), How::Waiting)
        }

        fn found(&self, path: &str, accept: &str) -> Found {
            match self.look(path, accept) {
                Lookup::File(found) => found,
                other => panic!("{path}: {other:?}"),
            }
        }
    }

    impl Drop for Tree {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.top);
        }
    }

    #[test]
    fn a_file_is_found_with_what_is_told_of_it() {
        let tree = Tree::new("file");
        tree.write("sub/a.css", "body{}", 10);
        let found = tree.found("sub/a.css", "");
        assert_eq!(
            (found.length, found.media.name, found.coding, found.varies),
            (6, "text/css; charset=utf-8", None, false)
        );
        let age = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("a time").as_nanos() as i128
            - found.modified;
        assert!((10..20).contains(&(age / 1_000_000_000)), "{age}");
        assert!(matches!(tree.look("sub/a.css/", ""), Lookup::Missing), "a file is no directory");
        assert!(matches!(tree.look("sub/b.css", ""), Lookup::Missing));
        assert!(matches!(tree.look("sub/a.css/b", ""), Lookup::Missing));
    }

    #[test]
    fn a_directory_is_its_index() {
        let tree = Tree::new("index");
        assert!(matches!(tree.look("sub/", ""), Lookup::Missing) && matches!(tree.look("sub", ""), Lookup::Missing));
        tree.write("sub/index.html", "deep", 0).write("index.html", "top level", 0);
        assert!(matches!(tree.look("sub", ""), Lookup::Directory));
        assert_eq!((tree.found("sub/", "").length, tree.found("", "").length), (4, 9));
        let without = Mapping { index: Vec::new(), ..tree.mapping.clone() };
        let wanted = Wanted { mapping: 0, path: Vec::new(), is_directory: true };
        assert!(matches!(look_up(&without, &wanted, &Accepted::default(), How::Waiting), Lookup::Missing));
    }

    #[test]
    fn a_form_beside_it_is_sent_to_those_who_accept_it_if_it_is_not_older() {
        let tree = Tree::new("forms");
        tree.write("a.js", "plain", 10)
            .write("a.js.gz", "gz", 10)
            .write("a.js.br", "b", 5)
            .write("a.js.zst", "old", 20);
        let sent = |accept: &str| {
            let found = tree.found("a.js", accept);
            assert!(found.varies && found.media.name == "text/javascript; charset=utf-8");
            (found.coding, found.length)
        };
        assert_eq!(sent(""), (None, 5));
        assert_eq!(sent("gzip"), (Some(Coding::Gzip), 2));
        assert_eq!(sent("gzip, br"), (Some(Coding::Brotli), 1));
        assert_eq!(sent("gzip, br;q=0.5"), (Some(Coding::Gzip), 2));
        assert_eq!(sent("zstd"), (None, 5), "it is older");
        assert_eq!(tree.found("a.js.gz", "gzip").media.name, "application/gzip", "by its own name it is itself");
        tree.write("b.png", "png", 10).write("b.png.gz", "gz", 0);
        let png = tree.found("b.png", "gzip");
        assert!(!png.varies && png.coding.is_none(), "it is compressed");
    }

    #[test]
    fn only_regular_files_are_opened() {
        let tree = Tree::new("devices");
        mkfifoat(CWD, tree.top.join("fifo"), Mode::RWXU).expect("a fifo");
        std::os::unix::net::UnixListener::bind(tree.top.join("socket")).expect("a socket");
        for special in ["fifo", "socket"] {
            assert!(matches!(tree.look(special, ""), Lookup::Refused), "{special}");
        }
        let devices = Tree {
            mapping: Mapping { directory: Path::new("/dev").into(), ..Mapping::default() },
            top: "/nonexistent".into(),
        };
        for device in ["null", "zero", "tty"] {
            assert!(matches!(devices.look(device, ""), Lookup::Refused), "{device}");
        }
    }

    #[test]
    fn a_directory_that_is_gone_has_nothing() {
        let tree = Tree::new("gone");
        fs::remove_dir_all(&tree.top).expect("it is there");
        assert!(matches!(tree.look("a", ""), Lookup::Missing));
    }

    #[test]
    fn what_the_caches_know_is_found_at_once() {
        let tree = Tree::new("cached");
        tree.write("a.css", "x", 0);
        let wanted = Wanted { mapping: 0, path: b"a.css".to_vec(), is_directory: false };
        let look = || look_up(&tree.mapping, &wanted, &Accepted::default(), How::Cached);
        // A sandbox or an old kernel may not tell; then a job asks.
        assert!(matches!(look(), Lookup::File(Found { length: 1, .. }) | Lookup::Unknown));
    }
}
