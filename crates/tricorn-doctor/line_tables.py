"""Writes the tests of crates/tricorn-doctor/src/python/lines.rs: tables of lines, and what CPython itself says of them.

    python crates/tricorn-doctor/line_tables.py python3.10 python3.11 python3.12 python3.13

One test for each interpreter that is named. The code that is compiled has steps of every kind: forward, backward, far,
over several lines, and instructions without a line.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parent / "src/python/lines_vectors.rs"

FAR = "\n" * 150

SOURCE = f"""
def f(a,
      b):
    x = a
    try:
        for i in range(b):
            x += (i +
                  a)
    except ValueError:
        return [y
            for y in
            range(3)]
    finally:
        x = 1
    {FAR}
    with open(a) as g:
        x = g.read(
            b,
        )
    return x
"""

# Run by each interpreter. A line of 0 stands for none.
ASK = f"""
import sys
code = compile({SOURCE!r}, "v", "exec").co_consts[0]
lines = [0] * (len(code.co_code) // 2)
for start, end, line in code.co_lines():
    for unit in range(start // 2, min(end // 2, len(lines))):
        lines[unit] = line or 0
form = "Pairs" if sys.version_info < (3, 11) else "Locations"
print(sys.version_info[1], form, code.co_firstlineno, code.co_linetable.hex(), *lines)
"""

TEST = """\
#[test]
fn lines_of_cpython_3_{minor}() {{
    let table = "{table}";
    let lines = [{lines}];
    check(Table::{form}, table, {first}, &lines.map(|line| (line != 0).then_some(line)));
}}
"""


def main(interpreters: list[str]) -> int:
    if not interpreters:
        print(__doc__)
        return 2
    tests = []
    for interpreter in interpreters:
        told = subprocess.run([interpreter, "-c", ASK], check=True, capture_output=True, text=True).stdout.split()
        minor, form, first, table, *lines = told
        tests.append(TEST.format(minor=minor, form=form, first=first, table=table, lines=", ".join(lines)))
    TESTS.write_text("// Written by crates/tricorn-doctor/line_tables.py.\n\n" + "\n".join(tests))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
