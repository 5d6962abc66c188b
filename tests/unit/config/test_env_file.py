"""Files of variables."""

from __future__ import annotations

from pathlib import Path

import pytest
from tricorn.config.env_file import parse, read
from tricorn.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("A=1\nB = 2\n", {"A": "1", "B": "2"}),
        ("# A=1\n\n  A=1 # one\nB=a#b", {"A": "1", "B": "a#b"}),
        ("export A=1\r\n", {"A": "1"}),
        ("A=\nB\nC=''\n", {"A": "", "C": ""}),
        ("A='${HOME} \\n' # as it is\n", {"A": "${HOME} \\n"}),
        ('A="one\\n\\"two\\" ${HOME} \\${HOME}"\n', {"A": 'one\n"two" /h ${HOME}'}),
        ("A=${HOME}/a\nB=${A}:${NONE:-none}${NONE}\n", {"A": "/h/a", "B": "/h/a:none"}),
        ("A=\"one\ntwo\"\nB='three\n\nfour'\n", {"A": "one\ntwo", "B": "three\n\nfour"}),
        ("URL=postgres://u:p@h:1/d?x=1&y=%20\n", {"URL": "postgres://u:p@h:1/d?x=1&y=%20"}),
        ("A=1\nA=2\n", {"A": "2"}),
        ("", {}),
    ],
)
def test_env_file_sets_variables(text: str, found: dict[str, str]) -> None:
    assert parse(text, ".env", {"HOME": "/h"}) == found


@pytest.mark.parametrize(
    ("text", "line"), [("A=1\nB='x\nC=2\n", 2), ("!\n", 1), ('A="x" y\n', 1), ("\n\n= 3\n", 3), ("A B\n", 1)]
)
def test_what_is_no_such_line(text: str, line: int) -> None:
    with pytest.raises(ConfigError, match=rf"^\.env:{line} \(env_file\): expected NAME=VALUE\.$"):
        parse(text, ".env", {})


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / ".env"
    with pytest.raises(ConfigError, match=r"Cannot read env_file .*: No such file"):
        read(str(path), {})
    path.write_bytes(b"\xff\xfeA=1")
    with pytest.raises(ConfigError, match="is not valid UTF-8"):
        read(str(path), {})
    path.write_bytes(b"\xef\xbb\xbfA=1")
    assert read(str(path), {}) == {"A": "1"}
