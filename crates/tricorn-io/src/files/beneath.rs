//! Opens what lies beneath a directory, and never anything else: openat2(2), or the same step by step where that is refused.
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2, readlinkat};
use rustix::io::{Errno, Result};
use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Symbolic links that one path may lead through: the kernel's own limit (path_resolution(7)).
const LINKS: usize = 40;

/// Whether a disk may be waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    /// For a thread with other things to do: EAGAIN if the kernel would have to ask a disk.
    Cached,
    /// For a job.
    Waiting,
}

/// Opens a directory whose path an operator has given.
pub(super) fn open_root(path: &Path, how: How) -> Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    match how {
        How::Cached => openat2(CWD, path, flags, Mode::empty(), ResolveFlags::CACHED),
        How::Waiting => openat(CWD, path, flags, Mode::empty()),
    }
}

/// Opens `path` beneath `root`. Symbolic links are followed as long as they stay there; one that is absolute leaves it (EXDEV), as does
/// `..` at the top.
pub(super) fn open_beneath(root: BorrowedFd<'_>, path: &[u8], flags: OFlags, how: How) -> Result<OwnedFd> {
    let flags = flags | OFlags::CLOEXEC;
    let mut resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    if how == How::Cached {
        resolve |= ResolveFlags::CACHED;
    }
    match openat2(root, OsStr::from_bytes(path), flags, Mode::empty(), resolve) {
        // Linux before 5.6, or a seccomp filter that does not know the call. EAGAIN is also what a race with a rename is told.
        Err(Errno::NOSYS | Errno::PERM) if how == How::Waiting => walk(root, path, flags),
        Err(Errno::NOSYS | Errno::PERM) => Err(Errno::AGAIN),
        Err(Errno::AGAIN) if how == How::Waiting => walk(root, path, flags),
        result => result,
    }
}

/// The same, one name after another. No name is followed by the kernel: `..` goes back to a directory that was open before.
fn walk(root: BorrowedFd<'_>, path: &[u8], flags: OFlags) -> Result<OwnedFd> {
    let mut above: Vec<OwnedFd> = Vec::new();
    let mut ahead: Vec<CString> = Vec::new();
    push(&mut ahead, path)?;
    let (mut links, step) = (0, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC);
    while let Some(name) = ahead.pop() {
        if name.as_bytes() == b".." {
            above.pop().ok_or(Errno::XDEV)?;
            continue;
        }
        let here = above.last().map_or(root, AsFd::as_fd);
        let found = openat(here, &name, step, Mode::empty())?;
        match FileType::from_raw_mode(fstat(&found)?.st_mode) {
            FileType::Symlink => {
                links += 1;
                let target = readlinkat(&found, c"", Vec::new())?;
                match target.as_bytes() {
                    _ if links > LINKS => return Err(Errno::LOOP),
                    [b'/', ..] => return Err(Errno::XDEV),
                    target => push(&mut ahead, target)?,
                }
            }
            FileType::Directory => above.push(found),
            _ if ahead.is_empty() => return openat(here, &name, flags | OFlags::NOFOLLOW, Mode::empty()),
            _ => return Err(Errno::NOTDIR),
        }
    }
    openat(above.last().map_or(root, AsFd::as_fd), c".", flags, Mode::empty())
}

/// Puts the names of a path before those that are ahead.
fn push(ahead: &mut Vec<CString>, path: &[u8]) -> Result<()> {
    let names = path.split(|&byte| byte == b'/').filter(|name| !matches!(*name, b"" | b"."));
    for name in names.rev() {
        ahead.push(CString::new(name).map_err(|_| Errno::INVAL)?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Read;
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    struct Tree(PathBuf);

    impl Tree {
        fn new(name: &str) -> Tree {
            let top = std::env::temp_dir().join(format!("tricorn-beneath-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&top);
            fs::create_dir_all(top.join("root/deep/er")).expect("directories");
            fs::write(top.join("root/file"), "inside").expect("a file");
            fs::write(top.join("root/deep/file"), "deep").expect("a file");
            fs::write(top.join("secret"), "outside").expect("a file");
            for (link, target) in [
                ("inner", "deep/file"),
                ("up", "deep/../file"),
                ("deep/back", "../file"),
                ("deep/dir", "er/.."),
                ("out", "../secret"),
                ("deep/out", "../../secret"),
                ("absolute", "/etc/passwd"),
                ("loop", "loop"),
                ("dangling", "nothing"),
            ] {
                symlink(target, top.join("root").join(link)).expect("a link");
            }
            Tree(top)
        }

        fn read(&self, path: &str, open: impl Fn(BorrowedFd<'_>, &[u8], OFlags) -> Result<OwnedFd>) -> Result<String> {
            let root = open_root(&self.0.join("root"), How::Waiting)?;
            let mut text = String::new();
            fs::File::from(open(root.as_fd(), path.as_bytes(), OFlags::RDONLY)?)
                .read_to_string(&mut text)
                .map_err(|_| Errno::ISDIR)?;
            Ok(text)
        }
    }

    impl Drop for Tree {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    /// Whichever way it is opened.
    #[test]
    fn only_what_lies_beneath_is_opened() {
        let tree = Tree::new("both");
        for (path, expected) in [
            ("file", Ok("inside")),
            ("deep/file", Ok("deep")),
            ("inner", Ok("deep")),
            ("up", Ok("inside")),
            ("deep/back", Ok("inside")),
            ("deep/dir/file", Ok("deep")),
            ("deep/../file", Ok("inside")),
            ("out", Err(Errno::XDEV)),
            ("deep/out", Err(Errno::XDEV)),
            ("../secret", Err(Errno::XDEV)),
            ("deep/../../secret", Err(Errno::XDEV)),
            ("absolute", Err(Errno::XDEV)),
            ("loop", Err(Errno::LOOP)),
            ("dangling", Err(Errno::NOENT)),
            ("nothing", Err(Errno::NOENT)),
            ("file/more", Err(Errno::NOTDIR)),
            ("deep", Err(Errno::ISDIR)),
        ] {
            let expected = expected.map(str::to_owned);
            assert_eq!(
                tree.read(path, |root, path, flags| open_beneath(root, path, flags, How::Waiting)),
                expected,
                "{path}"
            );
            assert_eq!(tree.read(path, walk), expected, "{path}, step by step");
        }
    }

    #[test]
    fn a_path_with_a_nul_is_none() {
        let tree = Tree::new("nul");
        assert_eq!(tree.read("fi\0le", walk), Err(Errno::INVAL));
    }
}
