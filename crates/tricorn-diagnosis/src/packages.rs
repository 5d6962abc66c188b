//! To which installed package a file belongs, by the lists that installers leave (RECORD), and which version a library is.
//!
//! In the worker, which is the only one that opens paths that its own process names.
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use tricorn_doctor::Native;

/// How far above a file its packages' lists are looked for.
const ANCESTORS: usize = 6;
/// Bytes that are read of a list, and of all lists for one file.
const LIST: u64 = 4 << 20;
const LISTS: usize = 32 << 20;
const MOST_KNOWN: usize = 256;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
    pub name: String,
    pub version: String,
}

/// Where native code comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origin {
    pub package: Option<Package>,
    /// The library's version, as its file is called.
    pub version: String,
}

/// Each file is looked up once.
#[derive(Debug, Default)]
pub struct Packages {
    known: HashMap<String, Option<Package>>,
}

impl Packages {
    pub fn origin(&mut self, native: &Native) -> Origin {
        let library = native.library.as_ref().map_or("", |library| &library.path);
        let package = self.owner(library).or_else(|| self.owner(extension(native)));
        Origin { package, version: version_of(Path::new(library)) }
    }

    fn owner(&mut self, path: &str) -> Option<Package> {
        if let Some(known) = self.known.get(path) {
            return known.clone();
        }
        if self.known.len() >= MOST_KNOWN {
            self.known.clear();
        }
        let found = path.starts_with('/').then(|| find(Path::new(path))).flatten();
        self.known.insert(path.to_owned(), found.clone());
        found
    }
}

/// The module for Python that has called into the library: its package is what the application imports.
fn extension(native: &Native) -> &str {
    let is_module = |path: &str| path.contains(".cpython-") || path.contains(".abi3.");
    native.frames.iter().map(|frame| frame.path.as_str()).find(|path| is_module(path)).unwrap_or_default()
}

fn find(path: &Path) -> Option<Package> {
    for root in path.ancestors().skip(1).take(ANCESTORS) {
        let mut lists = lists(root);
        if lists.is_empty() {
            continue;
        }
        let part = path.strip_prefix(root).ok()?.to_str()?;
        // The folder of a package is named after it as a rule, so its list is read first.
        let folder = part.split('/').next().unwrap_or(part);
        let folder = plain(folder.strip_suffix(".libs").unwrap_or(folder));
        lists.sort_by_key(|(name, _)| !plain(name).starts_with(&folder));
        let mut left = LISTS;
        for (name, list) in lists {
            let text = read(&list.join("RECORD"));
            if text.lines().any(|line| line.strip_prefix(part).is_some_and(|rest| rest.starts_with(','))) {
                return package(&name);
            }
            left = left.saturating_sub(text.len());
            if left == 0 {
                break;
            }
        }
    }
    None
}

/// The directories of installed packages, each with its name without the suffix.
fn lists(root: &Path) -> Vec<(String, PathBuf)> {
    let entries = fs::read_dir(root).into_iter().flatten().flatten();
    let named =
        |entry: fs::DirEntry| Some((entry.file_name().to_str()?.strip_suffix(".dist-info")?.to_owned(), entry.path()));
    entries.filter_map(named).collect()
}

fn read(path: &Path) -> String {
    let mut text = Vec::new();
    // Opening a pipe would wait for its writer.
    if fs::metadata(path).is_ok_and(|found| found.is_file()) {
        let _ = File::open(path).and_then(|file| file.take(LIST).read_to_end(&mut text));
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// `confluent_kafka-2.16.1`.
fn package(directory: &str) -> Option<Package> {
    let (name, version) = directory.rsplit_once('-')?;
    Some(Package { name: name.replace('_', "-"), version: version.to_owned() })
}

/// As names of packages are compared (PEP 503).
fn plain(name: &str) -> String {
    let mut plain = String::new();
    for each in name.chars() {
        match each {
            '-' | '_' | '.' if plain.ends_with('-') => {}
            '-' | '_' | '.' => plain.push('-'),
            _ => plain.extend(each.to_lowercase()),
        }
    }
    plain
}

/// `5.15` of a link to `libpq.so.5.15`.
fn version_of(path: &Path) -> String {
    let real = fs::canonicalize(path).unwrap_or_default();
    let name = real.file_name().unwrap_or_default().to_string_lossy();
    let version = name.rsplit_once(".so.").map_or("", |(_, version)| version);
    let is_version = version.contains('.') && version.split('.').all(|part| part.parse::<u32>().is_ok());
    if is_version { version.to_owned() } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use tricorn_doctor::{Library, NativeFrame};

    /// A directory of its own, which is removed at the end.
    struct Root(PathBuf);

    impl Root {
        fn new(name: &str) -> Root {
            let root = std::env::temp_dir().join(format!("tricorn-packages-{name}-{}", std::process::id()));
            fs::create_dir_all(&root).expect("a directory");
            Root(root)
        }

        fn install(&self, name: &str, files: &[&str]) {
            let list = self.0.join(format!("{name}.dist-info"));
            fs::create_dir_all(&list).expect("a directory");
            let text: String = files.iter().map(|file| format!("{file},sha256=x,1\n")).collect();
            fs::write(list.join("RECORD"), text).expect("a list");
        }

        fn path(&self, file: &str) -> String {
            self.0.join(file).to_str().expect("UTF-8").to_owned()
        }
    }

    impl Drop for Root {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn made(name: &str, version: &str) -> Option<Package> {
        Some(Package { name: name.into(), version: version.into() })
    }

    #[test]
    fn the_list_of_an_installer_names_the_package() {
        let root = Root::new("list");
        root.install("confluent_kafka-2.16.1", &["confluent_kafka/cimpl.so", "confluent_kafka.libs/librdkafka-1.so.1"]);
        root.install("other-1.0", &["other/a.so"]);
        let mut packages = Packages::default();
        let mut owner = |file: &str| packages.owner(&root.path(file));
        assert_eq!(owner("confluent_kafka.libs/librdkafka-1.so.1"), made("confluent-kafka", "2.16.1"));
        assert_eq!(owner("other/a.so"), made("other", "1.0"));
        assert_eq!(owner("other/b.so"), None);
        for path in ["", "/nowhere/at/all.so", "/no\0thing/here.so", "other/a.so"] {
            assert_eq!(packages.owner(path), None, "{path}");
        }
    }

    #[test]
    fn the_module_names_the_package_of_a_library_of_the_systems() {
        let root = Root::new("module");
        root.install("psycopg2-2.9.10", &["psycopg2/_psycopg.cpython-311.so"]);
        let frame = |path: String| NativeFrame { address: 0, path, function: None, offset: 0, certain: true };
        let module = root.path("psycopg2/_psycopg.cpython-311.so");
        let frames = vec![frame("/libc.so".into()), frame("/usr/lib/libpq.so.5".into()), frame(module)];
        let library = Some(Library { name: "libpq".into(), path: "/usr/lib/libpq.so.5".into(), function: None });
        let origin = Packages::default().origin(&Native { library, frames, ..Native::default() });
        assert_eq!(origin.package, made("psycopg2", "2.9.10"));
        assert_eq!(Packages::default().origin(&Native::default()), Origin::default());
    }

    #[test]
    fn a_list_that_is_a_pipe_is_not_waited_for() {
        let root = Root::new("pipe");
        fs::create_dir_all(root.0.join("a-1.dist-info")).expect("a directory");
        let status = std::process::Command::new("mkfifo").arg(root.path("a-1.dist-info/RECORD")).status();
        assert!(status.expect("mkfifo").success());
        assert_eq!(Packages::default().owner(&root.path("a/b.so")), None);
    }

    #[test]
    fn the_version_is_in_the_files_name() {
        let root = Root::new("version");
        fs::write(root.path("libpq.so.5.15"), "").expect("a file");
        symlink(root.path("libpq.so.5.15"), root.path("libpq.so.5")).expect("a link");
        assert_eq!(version_of(Path::new(&root.path("libpq.so.5"))), "5.15");
        for path in ["/x/librdkafka-1.so.1", "", "/lib.so.1.x", "/lib.so.1..2"] {
            assert_eq!(version_of(Path::new(path)), "", "{path}");
        }
    }
}
