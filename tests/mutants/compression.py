"""Faults of compressed responses."""

from __future__ import annotations

from tests.mutants.fault import Fault

POLICY = "crates/tricorn-proto/src/response/compression.rs"
CODING = "crates/tricorn-proto/src/message/coding.rs"
FIELDS = "crates/tricorn-proto/src/response/fields.rs"
COMPRESSED = "crates/tricorn-io/src/exchange/compressed.rs"
COMPRESSORS = "crates/tricorn-io/src/compress/mod.rs"
COMPRESS_TESTS = "crates/tricorn-io lib compress::"
POLICY_TESTS = "crates/tricorn-proto lib compression::"

COMPRESSION = (
    Fault(
        "breach",
        "what has credentials is not compressed",
        POLICY,
        "said.sets_cookie || asked.has_credentials()",
        "said.sets_cookie",
        (POLICY_TESTS,),
    ),
    Fault(
        "no_transform",
        "bytes that are not to be changed stay as they are",
        POLICY,
        'list(value).any(|word| word.eq_ignore_ascii_case(b"no-transform"))',
        "false",
        (POLICY_TESTS,),
    ),
    Fault(
        "weight_zero",
        "a coding with the weight 0 is not sent",
        CODING,
        "*weight > 0",
        "*weight < 1001",
        ("crates/tricorn-proto lib coding::",),
    ),
    Fault(
        "etag_stays_strong",
        "the tag of a compressed response is weak",
        FIELDS,
        'treatment.weakens && is_named(name, b"etag")',
        "false",
        (POLICY_TESTS,),
    ),
    Fault(
        "stream_without_flush",
        "an event does not wait for the next one",
        COMPRESSORS,
        "if self.at_hand { Then::Piece } else { Then::Flush }",
        "Then::Piece",
        (COMPRESS_TESTS,),
    ),
    Fault(
        "streams_without_bound",
        "a worker compresses so many streams at once",
        COMPRESSORS,
        "(count < STREAMS).then_some(count + 1)",
        "Some(count + 1)",
        (COMPRESS_TESTS,),
    ),
    Fault(
        "failed_body_ends",
        "a body that is shorter than its length has no end",
        COMPRESSED,
        "self.request.reply.missing() > 0",
        "false",
        ("crates/tricorn-io suite compressed::",),
    ),
)
