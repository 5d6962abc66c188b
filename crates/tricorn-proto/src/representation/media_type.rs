//! The media types of files, by the end of their names.

/// What a file's name says of its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MediaType {
    /// The value of Content-Type. Text is taken for UTF-8, as an operator's files are nearly always.
    pub name: &'static str,
    /// It is not compressed itself, so that there may be compressed copies beside it.
    pub is_compressible: bool,
}

/// Of a name that says nothing.
const UNKNOWN: MediaType = MediaType { name: "application/octet-stream", is_compressible: true };

/// The type of the file with this name: by its last extension, in any case.
pub fn media_type(name: &[u8]) -> MediaType {
    let Some(at) = memchr::memrchr(b'.', name) else { return UNKNOWN };
    let extension = &name[at + 1..];
    let mut lower = [0; LONGEST];
    let Some(lower) = lower.get_mut(..extension.len()) else { return UNKNOWN };
    lower.copy_from_slice(extension);
    lower.make_ascii_lowercase();
    let found = TYPES.binary_search_by(|(known, ..)| known.as_bytes().cmp(lower));
    found.map_or(UNKNOWN, |at| MediaType { name: TYPES[at].1, is_compressible: TYPES[at].2 })
}

/// Letters of the longest extension.
const LONGEST: usize = 11;

/// Extension, type, and whether it is worth to compress; in order. IANA's registry, and for scripts RFC 9239.
#[rustfmt::skip]
static TYPES: [(&str, &str, bool); 91] = [
    ("3gp", "video/3gpp", false),
    ("7z", "application/x-7z-compressed", false),
    ("aac", "audio/aac", false),
    ("apk", "application/vnd.android.package-archive", false),
    ("apng", "image/apng", false),
    ("atom", "application/atom+xml", true),
    ("avi", "video/x-msvideo", false),
    ("avif", "image/avif", false),
    ("bin", "application/octet-stream", true),
    ("bmp", "image/bmp", true),
    ("br", "application/octet-stream", false),
    ("bz2", "application/x-bzip2", false),
    ("css", "text/css; charset=utf-8", true),
    ("csv", "text/csv; charset=utf-8", true),
    ("doc", "application/msword", true),
    ("docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document", false),
    ("eot", "application/vnd.ms-fontobject", true),
    ("epub", "application/epub+zip", false),
    ("flac", "audio/flac", false),
    ("geojson", "application/geo+json", true),
    ("gif", "image/gif", false),
    ("glb", "model/gltf-binary", true),
    ("gltf", "model/gltf+json", true),
    ("gz", "application/gzip", false),
    ("heic", "image/heic", false),
    ("htm", "text/html; charset=utf-8", true),
    ("html", "text/html; charset=utf-8", true),
    ("ico", "image/vnd.microsoft.icon", true),
    ("ics", "text/calendar; charset=utf-8", true),
    ("jar", "application/java-archive", false),
    ("jpeg", "image/jpeg", false),
    ("jpg", "image/jpeg", false),
    ("js", "text/javascript; charset=utf-8", true),
    ("json", "application/json", true),
    ("jsonld", "application/ld+json", true),
    ("jxl", "image/jxl", false),
    ("log", "text/plain; charset=utf-8", true),
    ("m3u8", "application/vnd.apple.mpegurl", true),
    ("m4a", "audio/mp4", false),
    ("m4v", "video/mp4", false),
    ("map", "application/json", true),
    ("md", "text/markdown; charset=utf-8", true),
    ("mid", "audio/midi", true),
    ("mjs", "text/javascript; charset=utf-8", true),
    ("mkv", "video/x-matroska", false),
    ("mov", "video/quicktime", false),
    ("mp3", "audio/mpeg", false),
    ("mp4", "video/mp4", false),
    ("mpd", "application/dash+xml", true),
    ("mpeg", "video/mpeg", false),
    ("mpg", "video/mpeg", false),
    ("odp", "application/vnd.oasis.opendocument.presentation", false),
    ("ods", "application/vnd.oasis.opendocument.spreadsheet", false),
    ("odt", "application/vnd.oasis.opendocument.text", false),
    ("oga", "audio/ogg", false),
    ("ogg", "audio/ogg", false),
    ("ogv", "video/ogg", false),
    ("opus", "audio/ogg", false),
    ("otf", "font/otf", true),
    ("parquet", "application/vnd.apache.parquet", false),
    ("pdf", "application/pdf", false),
    ("png", "image/png", false),
    ("ppt", "application/vnd.ms-powerpoint", true),
    ("pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation", false),
    ("ps", "application/postscript", true),
    ("rar", "application/vnd.rar", false),
    ("rss", "application/rss+xml", true),
    ("rtf", "application/rtf", true),
    ("sql", "application/sql", true),
    ("svg", "image/svg+xml", true),
    ("tar", "application/x-tar", true),
    ("tgz", "application/gzip", false),
    ("tif", "image/tiff", true),
    ("tiff", "image/tiff", true),
    ("ts", "video/mp2t", false),
    ("ttf", "font/ttf", true),
    ("txt", "text/plain; charset=utf-8", true),
    ("vtt", "text/vtt; charset=utf-8", true),
    ("wasm", "application/wasm", true),
    ("wav", "audio/wav", true),
    ("weba", "audio/webm", false),
    ("webm", "video/webm", false),
    ("webmanifest", "application/manifest+json", true),
    ("webp", "image/webp", false),
    ("woff", "font/woff", false),
    ("woff2", "font/woff2", false),
    ("xhtml", "application/xhtml+xml", true),
    ("xls", "application/vnd.ms-excel", true),
    ("xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", false),
    ("xml", "application/xml", true),
    ("zip", "application/zip", false),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order_and_no_extension_is_too_long() {
        assert!(TYPES.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert_eq!(TYPES.iter().map(|(extension, ..)| extension.len()).max(), Some(LONGEST));
        assert!(TYPES.iter().all(|(_, name, _)| !name.starts_with("text/") || name.ends_with("; charset=utf-8")));
    }

    #[test]
    fn the_last_extension_says_it() {
        for (name, expected) in [
            ("style.css", "text/css; charset=utf-8"),
            ("APP.JS", "text/javascript; charset=utf-8"),
            ("app.5f3a.js.map", "application/json"),
            ("archive.tar.gz", "application/gzip"),
            ("site.webmanifest", "application/manifest+json"),
            ("README", "application/octet-stream"),
            ("a.", "application/octet-stream"),
            ("a.averylongextension", "application/octet-stream"),
            ("a.é", "application/octet-stream"),
        ] {
            assert_eq!(media_type(name.as_bytes()).name, expected, "{name}");
        }
        assert!(media_type(b"a.svg").is_compressible && !media_type(b"a.woff2").is_compressible);
    }
}
