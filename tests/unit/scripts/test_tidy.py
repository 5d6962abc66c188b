"""Budgets of sizes: files, and fields of Rust types. Tests in a file do not count."""

from __future__ import annotations

from scripts import tidy

FIELDS = "\n".join(f"    pub(crate) a{number}: u8," for number in range(16))


def test_a_file_of_more_than_500_lines_is_named() -> None:
    assert list(tidy.check("python/tricorn/a.py", "x = 1\n" * 500, set())) == []
    assert list(tidy.check("python/tricorn/a.py", "x = 1\n" * 501, set())) == [
        "python/tricorn/a.py: 501 lines; control flow fits in 500"
    ]
    assert list(tidy.check("python/tricorn/a.py", "x = 1\n" * 501, {"python/tricorn/a.py"})) == []


def test_tests_at_the_end_of_a_rust_file_do_not_count() -> None:
    tests = "#[cfg(test)]\nmod tests {\n" + "    // {\n" * 500 + "}\n"
    assert list(tidy.check("crates/a/src/a.rs", f"fn a() {{}}\n{tests}", set())) == []


def test_a_type_of_more_than_fifteen_fields_is_named() -> None:
    text = f"/// {{\npub struct Wide {{\n{FIELDS}\n}}\nstruct Narrow {{ a: u8 }}\n"
    found = "crates/a/src/a.rs:2: Wide has 16 fields; a type has up to 15"
    assert list(tidy.check("crates/a/src/a.rs", text, set())) == [found]
    assert list(tidy.check("crates/a/src/a.rs", text, {"crates/a/src/a.rs#Wide"})) == []
