"""Faults of what keeps the documents true: lines of the log, the site, runs through its pages, files of the hosting."""

from __future__ import annotations

from tests.mutants.fault import Fault

UNIT = "tests/unit/scripts"

DOCUMENTATION = (
    Fault(
        "opaque_texts_are_asked_for",
        "a call of the log whose text is made elsewhere is an error until it is named",
        "scripts/log_lines.py",
        "unknown = sorted({each.place for each in opaque} - set(CARRIED))",
        "unknown: list[str] = []",
        (f"{UNIT}/test_log_lines.py",),
    ),
    Fault(
        "both_branches_are_lines",
        "each text that an expression can be is a line",
        "scripts/log_lines.py",
        "return _texts(one, names, depth) + _texts(other, names, depth)",
        "return _texts(one, names, depth)",
        (f"{UNIT}/test_log_lines.py",),
    ),
    Fault(
        "tests_of_rust_say_no_lines",
        "texts of the tests of the core are no lines of the log",
        "scripts/log_lines.py",
        'source.partition("#[cfg(test)]")[0]',
        "source",
        (f"{UNIT}/test_log_lines.py",),
    ),
    Fault(
        "files_that_speak_are_known",
        "a file of the core that begins to log is an error until it is named",
        "scripts/log_lines.py",
        "if name not in CORE and re.search",
        "if name in CORE and re.search",
        (f"{UNIT}/test_log_lines.py",),
    ),
    Fault(
        "a_line_has_a_note",
        "a line of the log without a note is an error",
        "scripts/render_log_lines.py",
        "if text not in noted:",
        "if False:",
        (f"{UNIT}/test_render_log_lines.py",),
    ),
    Fault(
        "a_note_has_a_line",
        "a note on a line that is gone is an error",
        "scripts/render_log_lines.py",
        "for text in sorted(noted - {line.text for line in lines}):",
        "for text in ():",
        (f"{UNIT}/test_render_log_lines.py",),
    ),
    Fault(
        "bars_in_lines",
        "a bar in a line of the log does not end its cell",
        "scripts/render_log_lines.py",
        '.replace("|", "\\\\|")',
        "",
        (f"{UNIT}/test_render_log_lines.py",),
    ),
    Fault(
        "links_out_of_the_site",
        "a link to a file that is no page is none on the site",
        "scripts/build_site.py",
        'return f"{words} (`{goal}`)" if shown != goal and shown != path else f"`{goal}`"',
        "return link[0]",
        (f"{UNIT}/test_build_site.py",),
    ),
    Fault(
        "code_has_no_links",
        "blocks of code stand on the site as they are",
        "scripts/build_site.py",
        "for fence in FENCE.finditer(text):",
        "for fence in ():",
        (f"{UNIT}/test_build_site.py",),
    ),
    Fault(
        "commands_of_pages_succeed",
        "a page whose command fails fails its test",
        "tests/harness/pages.py",
        "assert done.returncode == 0,",
        "assert True,",
        ("tests/unit/harness/test_pages.py",),
    ),
    Fault(
        "output_of_pages_in_order",
        "what a page shows comes in its order",
        "tests/harness/pages.py",
        "rest = rest[place + 1 :]",
        "rest = rest[:]",
        ("tests/unit/harness/test_pages.py",),
    ),
    Fault(
        "the_wheel_of_this_python",
        "a wheel is tried on the interpreter that it is for",
        "scripts/try_wheel.py",
        'f"*-{tag}-{tag}-*.whl"',
        'f"*-{tag}*.whl"',
        (f"{UNIT}/test_hosting.py",),
    ),
    Fault(
        "wheels_for_each_python",
        "a release has a wheel for each Python of the classifiers",
        ".github/workflows/release.yml",
        'PYTHONS: "3.10 3.11 3.12 3.13 3.14"',
        'PYTHONS: "3.11 3.12 3.13 3.14"',
        (f"{UNIT}/test_hosting.py",),
    ),
)
