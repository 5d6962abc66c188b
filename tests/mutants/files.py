"""Faults of files that the server sends itself: what is opened, and which part of it is sent."""

from __future__ import annotations

from tests.mutants.fault import Fault

IO = "crates/tricorn-io"
PROTO = "crates/tricorn-proto"
SERVED = "tests/integration/test_static_files.py"
NAMED = "tests/integration/test_x_sendfile.py"
RULES = "tests/conformance/rfc9110/test_files.py"

FILES = (
    Fault(
        "files_beneath",
        "a link does not lead out of the directory",
        f"{IO}/src/files/beneath.rs",
        "ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS",
        "ResolveFlags::NO_MAGICLINKS",
        (f"{IO} lib", SERVED),
    ),
    Fault(
        "files_beneath_by_steps",
        "nor does `..`, where openat2(2) is refused",
        f"{IO}/src/files/beneath.rs",
        "above.pop().ok_or(Errno::XDEV)?;",
        "above.pop();",
        (f"{IO} lib",),
    ),
    Fault(
        "files_hidden",
        "no dot-file is sent",
        f"{IO}/src/files/map.rs",
        "segment[0] != b'.'",
        'segment != b".."',
        (f"{IO} lib", SERVED),
    ),
    Fault(
        "files_encoded_slash",
        "an encoded slash parts nothing",
        f"{IO}/src/files/map.rs",
        "b'/' | b'\\\\' | 0",
        "b'\\\\' | 0",
        (f"{IO} lib", SERVED),
    ),
    Fault(
        "files_older_copy",
        "a compressed copy that is older than its file is not sent",
        f"{IO}/src/files/lookup.rs",
        "is_regular(&other) && modified(&other) >= modified(stat)",
        "is_regular(&other)",
        (f"{IO} lib",),
    ),
    Fault(
        "files_bounded",
        "files that a disk does not open are bounded",
        f"{IO}/src/reactor/files.rs",
        "if self.out >= MOST {",
        "if self.out > usize::MAX - MOST {",
        (SERVED,),
    ),
    Fault(
        "named_within",
        "an application names files of its directories only, by whole segments",
        f"{IO}/src/files/map.rs",
        'let rest = path.strip_prefix(prefix)?.strip_prefix(b"/")?;',
        "let rest = path.strip_prefix(prefix)?;",
        (f"{IO} lib", NAMED),
    ),
    Fault(
        "named_is_not_sent",
        "the field that names a file is not sent",
        f"{IO}/src/exchange/named.rs",
        "&& !NamedBy::ALL.iter().any(|by| by.is(name))",
        "",
        (NAMED,),
    ),
    Fault(
        "named_until_the_end",
        "what names a file is kept when the application is done",
        f"{IO}/src/exchange/mod.rs",
        "if let Coder::Stream(_) = self.coder {",
        "if !self.coder.is_off() {",
        (NAMED,),
    ),
    Fault(
        "named_status",
        "conditions and ranges are for 200",
        f"{IO}/src/exchange/representation.rs",
        "if status == 200 {",
        "if status > 0 {",
        (NAMED,),
    ),
    Fault(
        "own_files_with_validators",
        "files of an application have ranges only with validators",
        f"{IO}/src/exchange/representation.rs",
        "!is_whole || !has_validator || sees_to_it",
        "!is_whole || sees_to_it",
        (NAMED,),
    ),
    Fault(
        "if_range_strong",
        "If-Range compares strongly",
        f"{PROTO}/src/representation/judge.rs",
        "selected.etag.is_some_and(|etag| tag.is_same(&etag))",
        "selected.etag.is_some_and(|etag| tag.is_alike(&etag))",
        (f"{PROTO} lib", RULES),
    ),
    Fault(
        "if_none_match_first",
        "If-Modified-Since is ignored beside If-None-Match",
        f"{PROTO}/src/representation/judge.rs",
        "    if !conditions.if_none_match.is_empty() {",
        "    if names(&conditions.if_none_match, |_| true) && conditions.if_modified_since.value().is_none() {",
        (f"{PROTO} lib", RULES),
    ),
    Fault(
        "ranges_overlap",
        "ranges that overlap are ignored",
        f"{PROTO}/src/representation/range.rs",
        "pair[0].start + pair[0].length > pair[1].start",
        "pair[0].start > pair[1].start",
        (f"{PROTO} lib", RULES),
    ),
)
