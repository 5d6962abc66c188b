"""Requests that must be refused, by the name of the attack: (bytes, status, why the reference differs or None)."""

from __future__ import annotations

from typing import NamedTuple


class Bad(NamedTuple):
    name: str
    sent: bytes
    status: int
    reference: str | None = None


def get(*fields: bytes, line: bytes = b"GET /hello HTTP/1.1", host: bytes = b"Host: t\r\n") -> bytes:
    return line + b"\r\n" + host + b"".join(field + b"\r\n" for field in fields) + b"\r\n"


def post(*fields: bytes, body: bytes = b"") -> bytes:
    return get(*fields, line=b"POST /body HTTP/1.1") + body


def chunks(coded: bytes) -> bytes:
    return post(b"Content-Type: a/b", b"Transfer-Encoding: chunked", body=coded)


CHUNKED = b"Transfer-Encoding: chunked"
BODY = b"5\r\nabcde\r\n0\r\n\r\n"
ACCEPTS = "accepts it"
BY_HOST = "serves what Host names"
LAZY = "calls the application before it has seen the body"

REQUEST_LINES = [
    Bad("garbage", b"\x17\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
    Bad("http2_preface", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
    Bad("empty_method", get(line=b" /hello HTTP/1.1"), 400),
    Bad("method_with_brackets", get(line=b"G(T /hello HTTP/1.1"), 400),
    Bad("method_in_lower_case", get(line=b"get /hello HTTP/1.1"), 400),
    Bad("method_with_nul", get(line=b"GE\0T /hello HTTP/1.1"), 400),
    Bad("method_too_long", get(line=b"G" * 300 + b" /hello HTTP/1.1"), 400),
    Bad("no_target", get(line=b"GET HTTP/1.1"), 400),
    Bad("no_version", get(line=b"GET /hello"), 400),
    Bad("two_spaces", get(line=b"GET  /hello HTTP/1.1"), 400),
    Bad("tab_for_space", get(line=b"GET\t/hello\tHTTP/1.1"), 400),
    Bad("space_in_target", get(line=b"GET /hel lo HTTP/1.1"), 400),
    Bad("space_at_the_end", get(line=b"GET /hello HTTP/1.1 "), 400),
    Bad("space_at_the_beginning", get(line=b" GET /hello HTTP/1.1"), 400),
    Bad("relative_target", get(line=b"GET hello HTTP/1.1"), 400),
    Bad("asterisk_without_options", get(line=b"GET * HTTP/1.1"), 400),
    Bad("authority_without_connect", get(line=b"GET t:80 HTTP/1.1"), 400),
    Bad("absolute_form_ftp", get(line=b"GET ftp://t/hello HTTP/1.1"), 400, ACCEPTS),
    Bad("absolute_form_of_another_host", get(line=b"GET http://good.example/hello HTTP/1.1"), 400, BY_HOST),
    Bad("absolute_form_of_another_port", get(line=b"GET http://t:8080/hello HTTP/1.1"), 400, BY_HOST),
    Bad("absolute_form_and_an_empty_host", get(line=b"GET http://t/hello HTTP/1.1", host=b"Host:\r\n"), 400, BY_HOST),
    Bad("absolute_form_of_another_host_1_0", get(line=b"GET http://good.example/hello HTTP/1.0"), 400, BY_HOST),
    Bad("nul_in_target", get(line=b"GET /hel\0lo HTTP/1.1"), 400),
    Bad("control_in_target", get(line=b"GET /hel\x1flo HTTP/1.1"), 400),
    Bad("del_in_target", get(line=b"GET /hel\x7flo HTTP/1.1"), 400),
    Bad("high_byte_in_target", get(line=b"GET /hel\xffo HTTP/1.1"), 400),
    Bad("version_0_9", get(line=b"GET /hello HTTP/0.9"), 400),
    Bad("version_2", get(line=b"GET /hello HTTP/2.0"), 400),
    Bad("version_1_10", get(line=b"GET /hello HTTP/1.10"), 400),
    Bad("version_in_lower_case", get(line=b"GET /hello http/1.1"), 400),
    Bad("version_with_comma", get(line=b"GET /hello HTTP/1,1"), 400),
    Bad("version_with_space", get(line=b"GET /hello HTTP /1.1"), 400),
    Bad("another_protocol", get(line=b"GET /hello FTP/1.1"), 400),
    Bad("bare_lf_after_request_line", b"GET /hello HTTP/1.1\nHost: t\r\n\r\n", 400),
    Bad("bare_cr_in_request_line", get(line=b"GET /hello\rx HTTP/1.1"), 400),
    Bad("long_request_line", get(line=b"GET /" + b"x" * (4095 - 14) + b" HTTP/1.1"), 414),
]

HEADS = [
    Bad("missing_host", get(host=b""), 400, ACCEPTS),
    Bad("duplicate_host", get(b"Host: u"), 400),
    Bad("duplicate_equal_host", get(b"Host: t"), 400),
    Bad("host_with_space", get(host=b"Host: a b\r\n"), 400, ACCEPTS),
    Bad("host_with_path", get(host=b"Host: a/b\r\n"), 400, ACCEPTS),
    Bad("host_with_user", get(host=b"Host: u@t\r\n"), 400, ACCEPTS),
    Bad("host_with_comma", get(host=b"Host: a, b\r\n"), 400, ACCEPTS),
    Bad("host_with_bad_port", get(host=b"Host: t:8x\r\n"), 400, ACCEPTS),
    Bad("host_in_two_lines", b"GET /hello HTTP/1.1\r\nHost:\r\n t\r\n\r\n", 400),
    Bad("space_before_colon", get(b"X-A : b"), 400),
    Bad("tab_before_colon", get(b"X-A\t: b"), 400),
    Bad("space_before_name", b"GET /hello HTTP/1.1\r\n Host: t\r\n\r\n", 400),
    Bad("obs_fold", get(b"X-A: b", b" c"), 400),
    Bad("obs_fold_with_tab", get(b"X-A: b", b"\tc"), 400),
    Bad("no_colon", get(b"X-A"), 400),
    Bad("empty_name", get(b": b"), 400),
    Bad("name_with_brackets", get(b"X(A): b"), 400),
    Bad("name_with_nul", get(b"X\0A: b"), 400),
    Bad("name_with_high_byte", get(b"X\xe4: b"), 400),
    Bad("nul_in_value", get(b"X-A: b\0c"), 400),
    Bad("bare_lf_in_value", get(b"X-A: b\nX-Injected: c"), 400),
    Bad("bare_lf_after_field", b"GET /hello HTTP/1.1\r\nHost: t\nX-A: b\r\n\r\n", 400),
    Bad("bare_cr_in_value", get(b"X-A: b\rX-Injected: c"), 400),
    Bad("bare_cr_after_field", b"GET /hello HTTP/1.1\r\nHost: t\rX-A: b\r\n\r\n", 400),
    Bad("bare_lf_at_the_end", b"GET /hello HTTP/1.1\r\nHost: t\r\n\n", 400),
    Bad("only_bare_lfs", b"GET /hello HTTP/1.1\nHost: t\n\n", 400),
    Bad("control_in_value", get(b"X-A: b\x01c"), 400),
    Bad("escape_in_value", get(b"X-A: \x1b[2J"), 400),
    Bad("del_in_value", get(b"X-A: b\x7fc"), 400),
    # One beyond what test_bad_requests.WITHIN has: Host counts, and a field's CRLF.
    Bad("too_many_fields", get(*(b"X-%d: y" % n for n in range(100))), 431),
    Bad("field_too_long", get(b"X-A: " + b"y" * (8190 - 6)), 431),
    Bad("name_too_long", get(b"X" * 9000 + b": y"), 431),
    Bad("endless_head", get(*(b"X-%d: %b" % (n, b"y" * 8000) for n in range(150))), 431),
    Bad("contradictory_scheme", get(b"X-Forwarded-Proto: https", b"X-Forwarded-Ssl: off"), 400),
    Bad("unknown_expectation", get(b"Expect: miracle"), 417),
]

FRAMING = [
    Bad("cl_te", post(b"Content-Length: 5", CHUNKED, body=BODY), 400),
    Bad("te_cl", post(CHUNKED, b"Content-Length: 5", body=BODY), 400),
    Bad("duplicate_content_length", post(b"Content-Length: 5", b"Content-Length: 6", body=b"abcdef"), 400),
    Bad("duplicate_equal_content_length", post(b"Content-Length: 5", b"Content-Length: 5", body=b"abcde"), 400),
    Bad("content_length_list", post(b"Content-Length: 5, 5", body=b"abcde"), 400),
    Bad("content_length_plus", post(b"Content-Length: +5", body=b"abcde"), 400),
    Bad("content_length_minus", post(b"Content-Length: -5", body=b"abcde"), 400),
    Bad("content_length_hex", post(b"Content-Length: 0x5", body=b"abcde"), 400),
    Bad("content_length_underscore", post(b"Content-Length: 1_0", body=b"abcdeabcde"), 400),
    Bad("content_length_point", post(b"Content-Length: 5.0", body=b"abcde"), 400),
    Bad("content_length_empty", post(b"Content-Length: ", body=b"abcde"), 400),
    Bad("content_length_words", post(b"Content-Length: five", body=b"abcde"), 400),
    Bad("content_length_with_space", post(b"Content-Length: 1 0", body=b"abcdeabcde"), 400),
    Bad("content_length_superscript", post(b"Content-Length: \xb2", body=b"ab"), 400),
    Bad("content_length_beyond_64_bits", post(b"Content-Length: 99999999999999999999999"), 400, LAZY),
    Bad("content_length_space_before_colon", post(b"Content-Length : 5", body=b"abcde"), 400),
    Bad("te_unknown", post(b"Transfer-Encoding: xchunked", body=BODY), 501),
    Bad("te_gzip_alone", post(b"Transfer-Encoding: gzip", body=BODY), 400),
    Bad("te_chunked_not_last", post(b"Transfer-Encoding: chunked, identity", body=BODY), 400),
    Bad("te_chunked_twice", post(b"Transfer-Encoding: chunked, chunked", body=BODY), 400),
    Bad("te_chunked_in_two_fields", post(CHUNKED, CHUNKED, body=BODY), 400),
    Bad("te_quoted", post(b'Transfer-Encoding: "chunked"', body=BODY), 501),
    Bad("te_with_parameter", post(b"Transfer-Encoding: chunked;a=b", body=BODY), 501),
    Bad("te_vertical_tab", post(b"Transfer-Encoding: \x0bchunked", body=BODY), 400),
    Bad("te_empty", post(b"Transfer-Encoding: ", body=BODY), 501, ACCEPTS),
    Bad("te_space_before_colon", post(b"Transfer-Encoding : chunked", body=BODY), 400),
    Bad("te_on_http_1_0", get(CHUNKED, line=b"POST /body HTTP/1.0") + BODY, 400),
    Bad("te_identity", post(b"Transfer-Encoding: identity", body=BODY), 400, ACCEPTS),
]

CHUNKS = [
    Bad("chunk_size_empty", chunks(b"\r\nabc\r\n0\r\n\r\n"), 400, LAZY),
    Bad("chunk_size_words", chunks(b"zz\r\nabc\r\n0\r\n\r\n"), 400, LAZY),
    Bad("chunk_size_0x", chunks(b"0x3\r\nabc\r\n0\r\n\r\n"), 400, LAZY),
    Bad("chunk_size_plus", chunks(b"+3\r\nabc\r\n0\r\n\r\n"), 400, LAZY),
    Bad("chunk_size_minus", chunks(b"-3\r\nabc\r\n0\r\n\r\n"), 400, LAZY),
    Bad("chunk_size_underscore", chunks(b"1_0\r\n" + b"a" * 16 + b"\r\n0\r\n\r\n"), 400, LAZY),
    Bad("chunk_size_leading_space", chunks(b" 3\r\nabc\r\n0\r\n\r\n"), 400, LAZY),
    Bad("chunk_size_beyond_64_bits", chunks(b"1" + b"0" * 17 + b"\r\nabc\r\n0\r\n\r\n"), 400, LAZY),
    Bad("chunk_size_endless", chunks(b"0" * 100_000 + b"3\r\nabc\r\n0\r\n\r\n"), 400, LAZY),
    Bad("chunk_size_bare_lf", chunks(b"3\nabc\r\n0\r\n\r\n"), 400, LAZY),
    Bad("chunk_size_bare_cr", chunks(b"3\rabc\r\n0\r\n\r\n"), 400, LAZY),
    Bad("chunk_data_too_long", chunks(b"3\r\nabcd\r\n0\r\n\r\n"), 400, LAZY),
    Bad("chunk_data_bare_lf", chunks(b"3\r\nabc\n0\r\n\r\n"), 400, LAZY),
    Bad("chunk_data_without_crlf", chunks(b"3\r\nabc0\r\n\r\n"), 400, LAZY),
    Bad("chunk_extension_bare_lf", chunks(b"3;a\nb\r\nabc\r\n0\r\n\r\n"), 400, LAZY),
    Bad("chunk_extension_nul", chunks(b"3;a=\0\r\nabc\r\n0\r\n\r\n"), 400, LAZY),
    Bad("chunk_extension_open_quote", chunks(b'3;a="b\r\nabc\r\n0\r\n\r\n'), 400, LAZY),
    Bad("chunk_extension_no_name", chunks(b"3;=b\r\nabc\r\n0\r\n\r\n"), 400, LAZY),
    Bad("chunk_extension_endless", chunks(b"3;a=" + b"b" * 100_000 + b"\r\nabc\r\n0\r\n\r\n"), 400, LAZY),
    Bad("last_chunk_bare_lf", chunks(b"3\r\nabc\r\n0\n\n"), 400, LAZY),
    Bad("trailer_without_colon", chunks(b"3\r\nabc\r\n0\r\nX-T\r\n\r\n"), 400, LAZY),
    Bad("trailer_bare_lf", chunks(b"3\r\nabc\r\n0\r\nX-T: a\n\r\n"), 400, LAZY),
    Bad("trailer_content_length", chunks(b"3\r\nabc\r\n0\r\nContent-Length: 5\r\n\r\n"), 400, LAZY),
    Bad("trailer_transfer_encoding", chunks(b"3\r\nabc\r\n0\r\nTransfer-Encoding: chunked\r\n\r\n"), 400, LAZY),
    Bad("trailer_host", chunks(b"3\r\nabc\r\n0\r\nHost: u\r\n\r\n"), 400, LAZY),
]

ALL = [*REQUEST_LINES, *HEADS, *FRAMING, *CHUNKS]
assert len({bad.name for bad in ALL}) == len(ALL), "a name is that of one attack"
