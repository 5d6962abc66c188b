//! Which file a path means: prefixes of whole segments, and names that are never looked for. And which one an application means, in
//! X-Sendfile and X-Accel-Redirect.
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use tricorn_proto::message::target::percent_decode;

/// Where files of the server lie, the longest prefix first.
#[derive(Debug, Clone, Default)]
pub struct StaticMap {
    mappings: Vec<Mapping>,
    named: Vec<Named>,
    watched: Watched,
}

/// The fields by which the application may name files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Watched {
    sendfile: bool,
    accel_redirect: bool,
}

impl Watched {
    #[inline]
    pub fn any(self) -> bool {
        self.sendfile || self.accel_redirect
    }

    pub fn includes(self, by: NamedBy) -> bool {
        match by {
            NamedBy::Sendfile => self.sendfile,
            NamedBy::AccelRedirect => self.accel_redirect,
        }
    }
}

/// A directory whose files the application may name (`x_sendfile`).
#[derive(Debug, Clone, Default)]
pub struct Named {
    /// Names in X-Accel-Redirect begin with this; `None`: X-Sendfile has the path of the file. Without a slash at its end.
    pub prefix: Option<Vec<u8>>,
    /// Only its directory counts.
    pub mapping: Mapping,
}

/// The field by which an application names a file to be sent in place of its body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NamedBy {
    /// The path of a file.
    Sendfile,
    /// The path of a URI, as nginx has it for its internal locations.
    AccelRedirect,
}

impl NamedBy {
    pub const ALL: [NamedBy; 2] = [NamedBy::Sendfile, NamedBy::AccelRedirect];

    pub fn name(self) -> &'static str {
        match self {
            NamedBy::Sendfile => "X-Sendfile",
            NamedBy::AccelRedirect => "X-Accel-Redirect",
        }
    }

    /// Whether a header field is this one.
    #[inline]
    pub fn is(self, name: &[u8]) -> bool {
        name.len() == self.name().len() && name.eq_ignore_ascii_case(self.name().as_bytes())
    }
}

/// A directory whose files are sent at a prefix of paths.
#[derive(Debug, Clone, Default)]
pub struct Mapping {
    /// The segments of the prefix, decoded; none for `/`.
    pub prefix: Vec<Vec<u8>>,
    pub directory: PathBuf,
    /// The value of Cache-Control; empty: none is sent.
    pub cache_control: Vec<u8>,
    /// The file that stands for its directory; empty: none does.
    pub index: Vec<u8>,
    /// What is not there is the application's; else it is not found.
    pub falls_through: bool,
}

/// A file that is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// Which mapping it is of.
    pub mapping: usize,
    /// Beneath the directory, decoded, without a slash at the ends; empty: the directory itself.
    pub path: Vec<u8>,
    /// The path ends with a slash.
    pub is_directory: bool,
}

/// What a path means.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Match {
    /// No file.
    Nothing,
    File(Wanted),
    /// One of this mapping that is never sent.
    Refused(usize),
}

impl StaticMap {
    pub fn new(mut mappings: Vec<Mapping>) -> StaticMap {
        mappings.sort_by_key(|mapping| std::cmp::Reverse(mapping.prefix.len()));
        StaticMap { mappings, ..StaticMap::default() }
    }

    /// With directories whose files the application may name.
    pub fn with_named(mut self, mut named: Vec<Named>) -> StaticMap {
        let length = |named: &Named| named.prefix.as_ref().map_or(named.mapping.directory.as_os_str().len(), Vec::len);
        named.sort_by_key(|one| std::cmp::Reverse(length(one)));
        let has = |by| named.iter().any(|named| named.by() == by);
        self.watched = Watched { sendfile: has(NamedBy::Sendfile), accel_redirect: has(NamedBy::AccelRedirect) };
        self.named = named;
        self
    }

    /// The fields by which the application may name files.
    #[inline]
    pub(crate) fn watched(&self) -> Watched {
        self.watched
    }

    /// The directories of the files that a field may name, for the log.
    pub(crate) fn named_by(&self, by: NamedBy) -> String {
        let all = self.named.iter().filter(|named| named.by() == by).map(|named| match &named.prefix {
            Some(prefix) => format!("{}={}", String::from_utf8_lossy(prefix), named.mapping.directory.display()),
            None => named.mapping.directory.display().to_string(),
        });
        all.collect::<Vec<_>>().join(", ")
    }

    /// The file that an application names. `None`: it lies in none of the directories.
    pub(crate) fn find_named(&self, by: NamedBy, value: &[u8]) -> Option<Wanted> {
        let path = match by {
            NamedBy::Sendfile => value.to_vec(),
            NamedBy::AccelRedirect => decoded(value.split(|&byte| byte == b'?').next().unwrap_or_default()),
        };
        let within = |named: &Named| {
            let prefix = match &named.prefix {
                Some(prefix) => prefix.as_slice(),
                None => named.mapping.directory.as_os_str().as_bytes(),
            };
            let rest = path.strip_prefix(prefix)?.strip_prefix(b"/")?;
            (!rest.is_empty() && !rest.contains(&0)).then(|| rest.to_vec())
        };
        let (at, path) = self
            .named
            .iter()
            .enumerate()
            .filter(|(_, named)| named.by() == by)
            .find_map(|(at, named)| within(named).map(|path| (at, path)))?;
        Some(Wanted { mapping: self.mappings.len() + at, path, is_directory: false })
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.mappings.is_empty() && self.named.is_empty()
    }

    pub(crate) fn mapping(&self, index: usize) -> Option<&Mapping> {
        let named = || self.named.get(index.checked_sub(self.mappings.len())?).map(|named| &named.mapping);
        self.mappings.get(index).or_else(named)
    }

    /// What the path of a target means, as it came. Each segment is decoded by itself: an encoded slash parts nothing.
    pub(crate) fn find(&self, raw: &[u8]) -> Match {
        if self.mappings.is_empty() {
            return Match::Nothing;
        }
        let Some(raw) = raw.strip_prefix(b"/") else { return Match::Nothing };
        let segments: Vec<Vec<u8>> = raw.split(|&byte| byte == b'/').map(decoded).collect();
        let found = self.mappings.iter().position(|mapping| segments.starts_with(&mapping.prefix));
        let Some(index) = found else { return Match::Nothing };
        // For `/static` itself nothing is left, not even an empty segment.
        let mut rest = &segments[self.mappings[index].prefix.len()..];
        let is_directory = rest.last().is_some_and(Vec::is_empty);
        if is_directory {
            rest = &rest[..rest.len() - 1];
        }
        if !rest.iter().all(|segment| is_name(segment)) {
            return Match::Refused(index);
        }
        Match::File(Wanted { mapping: index, path: rest.join(&b'/'), is_directory })
    }
}

impl Named {
    fn by(&self) -> NamedBy {
        if self.prefix.is_some() { NamedBy::AccelRedirect } else { NamedBy::Sendfile }
    }
}

fn decoded(segment: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    percent_decode(segment, &mut out);
    out
}

/// Whether a file of this name may be sent: no dot-file, `.` and `..` among them, and nothing that other programs take for a separator
/// or an end.
fn is_name(segment: &[u8]) -> bool {
    !segment.is_empty() && segment[0] != b'.' && !segment.iter().any(|byte| matches!(byte, b'/' | b'\\' | 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(prefixes: &[&str]) -> StaticMap {
        StaticMap::new(prefixes.iter().map(|prefix| mapping(prefix)).collect())
    }

    fn mapping(prefix: &str) -> Mapping {
        let segments = prefix.split('/').filter(|segment| !segment.is_empty());
        Mapping { prefix: segments.map(|segment| segment.as_bytes().to_vec()).collect(), ..Mapping::default() }
    }

    /// The path of the file and the prefix of its mapping, with a slash behind the path of a directory.
    fn file(map: &StaticMap, raw: &str) -> Option<(String, String)> {
        let Match::File(wanted) = map.find(raw.as_bytes()) else { return None };
        let mapping = map.mapping(wanted.mapping).expect("it is there");
        let mut path = String::from_utf8(wanted.path).expect("text");
        path.push_str(if wanted.is_directory { "/" } else { "" });
        Some((path, String::from_utf8(mapping.prefix.join(&b'/')).expect("text")))
    }

    fn is_refused(map: &StaticMap, raw: &str) -> bool {
        matches!(map.find(raw.as_bytes()), Match::Refused(_))
    }

    #[test]
    fn prefixes_are_whole_segments_of_the_decoded_path() {
        let map = map(&["/static", "/static/deep", "/a b"]);
        let at = |path: &str, prefix: &str| Some((path.to_owned(), prefix.to_owned()));
        for (raw, expected) in [
            ("/static/a.css", at("a.css", "static")),
            ("/static/sub/a.css", at("sub/a.css", "static")),
            ("/static/sub/", at("sub/", "static")),
            ("/static/", at("/", "static")),
            ("/static", at("", "static")),
            ("/static/deep/a.css", at("a.css", "static/deep")),
            ("/static/deeper/a.css", at("deeper/a.css", "static")),
            ("/%73tatic/%61.css", at("a.css", "static")),
            ("/a%20b/c%20d", at("c d", "a b")),
            ("/static/a%2520b", at("a%20b", "static")),
            ("/static/%E2%82%AC.txt", at("€.txt", "static")),
            ("/static/a%zz", at("a%zz", "static")),
            ("/statics/a.css", None),
            ("/Static/a.css", None),
            ("/", None),
            ("", None),
            ("*", None),
            ("static/a.css", None),
            ("/other/../static/a.css", None),
            ("//static/a.css", None),
            ("/static%2Fa.css", None),
        ] {
            assert_eq!(file(&map, raw), expected, "{raw}");
            assert!(!is_refused(&map, raw), "{raw}");
        }
    }

    #[test]
    fn what_leads_elsewhere_is_never_looked_for() {
        for map in [map(&["/static"]), map(&["/"])] {
            for path in [
                "..",
                "../secret",
                "a/../../secret",
                "%2e%2e/secret",
                "%2E./secret",
                "a/..",
                ".",
                "./a",
                ".env",
                ".git/config",
                "a/.htaccess",
                "%2eenv",
                "a%00.css",
                "%00",
                "a%2fb",
                "a%2Fb",
                "..%2fsecret",
                "a%5cb",
                "..\\secret",
                "..%5csecret",
                "/etc/passwd",
                "a//b",
                "//",
                "...",
                "a/.../b",
            ] {
                let raw = match map.mapping(0) {
                    Some(mapping) if mapping.prefix.is_empty() => format!("/{path}"),
                    _ => format!("/static/{path}"),
                };
                assert!(is_refused(&map, &raw), "{raw}");
            }
        }
    }

    #[test]
    fn a_mapping_of_everything_has_what_no_other_has() {
        let map = map(&["/", "/static"]);
        assert_eq!(file(&map, "/robots.txt"), Some(("robots.txt".into(), String::new())));
        assert_eq!(file(&map, "/"), Some(("/".into(), String::new())));
        assert_eq!(file(&map, "/static/a"), Some(("a".into(), "static".into())));
    }

    fn named(prefix: Option<&str>, directory: &str) -> Named {
        let prefix = prefix.map(|prefix| prefix.as_bytes().to_vec());
        Named { prefix, mapping: Mapping { directory: directory.into(), ..Mapping::default() } }
    }

    #[test]
    fn an_application_names_files_within_its_directories() {
        let map = map(&["/static"]).with_named(vec![
            named(None, "/srv/files"),
            named(None, "/srv/files/deep"),
            named(Some("/protected"), "/srv/protected"),
        ]);
        let found = |by, value: &str| {
            let wanted = map.find_named(by, value.as_bytes())?;
            let directory = map.mapping(wanted.mapping)?.directory.to_str()?.to_owned();
            Some((directory, String::from_utf8(wanted.path).ok()?))
        };
        let at = |directory: &str, path: &str| Some((directory.to_owned(), path.to_owned()));
        for (by, value, expected) in [
            (NamedBy::Sendfile, "/srv/files/a b", at("/srv/files", "a b")),
            (NamedBy::Sendfile, "/srv/files/a%20b", at("/srv/files", "a%20b")),
            (NamedBy::Sendfile, "/srv/files/deep/a", at("/srv/files/deep", "a")),
            // The lookup finds that it leads elsewhere.
            (NamedBy::Sendfile, "/srv/files/../secret", at("/srv/files", "../secret")),
            (NamedBy::Sendfile, "/srv/filesystem", None),
            (NamedBy::Sendfile, "/srv/files", None),
            (NamedBy::Sendfile, "/srv/files/", None),
            (NamedBy::Sendfile, "/etc/passwd", None),
            (NamedBy::Sendfile, "a", None),
            (NamedBy::Sendfile, "", None),
            (NamedBy::Sendfile, "/protected/a", None),
            (NamedBy::AccelRedirect, "/protected/a%20b?c=d", at("/srv/protected", "a b")),
            (NamedBy::AccelRedirect, "/protected/a%00b", None),
            (NamedBy::AccelRedirect, "/static/a", None),
            (NamedBy::AccelRedirect, "/srv/files/a", None),
        ] {
            assert_eq!(found(by, value), expected, "{value}");
        }
        assert!(NamedBy::ALL.iter().all(|by| map.watched().includes(*by)));
        assert_eq!(map.named_by(NamedBy::AccelRedirect), "/protected=/srv/protected");
        assert!(!StaticMap::default().watched().any());
    }

    #[test]
    fn a_hidden_prefix_was_meant() {
        assert_eq!(file(&map(&["/.well-known"]), "/.well-known/acme"), Some(("acme".into(), ".well-known".into())));
    }
}
