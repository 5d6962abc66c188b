"""Kinds: what is read, what is refused, and how that is said."""

from __future__ import annotations

from pathlib import Path

import pytest
from tricorn.config import validators as kinds
from tricorn.config.addresses import Addresses


@pytest.mark.parametrize(
    ("kind", "raw", "value"),
    [
        (kinds.Integer(), "8", 8),
        (kinds.Integer(), "08", 8),
        (kinds.Integer(), "0x10", 16),
        (kinds.Integer(), 8, 8),
        (kinds.Integer(min=1, zero=1), "0", 1),
        (kinds.Choice(("info", "warning"), also=(("warn", "warning"),)), "WARN", "warning"),
        (kinds.OrAuto(kinds.Integer()), "8", 8),
        (kinds.OrAuto(kinds.Integer()), 0, 0),
        (kinds.OrAuto(kinds.Integer()), " Auto ", "auto"),
        (kinds.OrAuto(kinds.Boolean()), "Auto", "auto"),
        (kinds.OrAuto(kinds.Boolean()), "off", False),
        (kinds.OrAuto(kinds.Boolean()), True, True),
        (kinds.Seconds(), "30", 30),
        (kinds.Seconds(), "0.5", 0.5),
        (kinds.Milliseconds(), "500-3000", "500-3000"),
        (kinds.Milliseconds(), " 500 - 3000 ", "500-3000"),
        (kinds.Milliseconds(), 1000, "1000"),
        (kinds.Milliseconds(), "", None),
        (kinds.Milliseconds(), None, None),
        (kinds.Bytes(), "65536", 65536),
        (kinds.Bytes(), "512K", 512 * 1024),
        (kinds.Bytes(), "2m", 2 << 20),
        (kinds.Bytes(), "3G", 3 << 30),
        (kinds.Bytes(), 7, 7),
        (kinds.Umask(), "022", 0o22),
        (kinds.Umask(), "0o22", 0o22),
        (kinds.Umask(), "18", 18),
        (kinds.Boolean(), "yes", True),
        (kinds.Preloading(), "yes", True),
        (kinds.Preloading(), False, False),
        (kinds.Preloading(), "Mold", "mold"),
        (kinds.CanarySize(), 0, 0),
        (kinds.CanarySize(), " 3 ", 3),
        (kinds.CanarySize(), " 10 % ", "10%"),
        (kinds.CanarySize(), "100%", "100%"),
        (kinds.Boolean(), "False", False),
        (kinds.Boolean(), True, True),
        (kinds.Text(), " a b ", "a b"),
        (kinds.OptionalText(), "", None),
        (kinds.OptionalText(), None, None),
        (kinds.Choice(("drop", "refuse")), "Drop", "drop"),
        (kinds.TextList(), "a, b,,c", ("a", "b", "c")),
        (kinds.TextList(), ["a,b", "c"], ("a,b", "c")),
        (Addresses(), ["unix:/a,b"], ("unix:/a,b",)),
        (Addresses(), ":8000,[::1]:8000", (":8000", "[::1]:8000")),
        (kinds.EnvAssignments(), ["A=1", "B=x=y"], (("A", "1"), ("B", "x=y"))),
        (kinds.EnvAssignments(), "A=1 B='x, y'", (("A", "1"), ("B", "x, y"))),
        (kinds.Networks(), "10.0.0.0/8, ::1", "10.0.0.0/8,::1"),
        (kinds.Networks(), "*", "*"),
        (kinds.HeaderValues(), "x-proto=https", {"X-PROTO": "https"}),
        (kinds.HeaderValues(), {"x": "1"}, {"X": "1"}),
    ],
)
def test_validator_accepts_a_value(kind: kinds.Kind[object], raw: object, value: object) -> None:
    assert kind.parse(raw) == value


@pytest.mark.parametrize(
    ("kind", "raw", "words"),
    [
        (kinds.Integer(), "eight", "expected a whole number"),
        (kinds.Integer(), "", "expected a whole number"),
        (kinds.Integer(), True, "expected a whole number"),
        (kinds.Integer(), 1.5, "expected a whole number"),
        (kinds.OrAuto(kinds.Integer()), "many", "expected a whole number or auto"),
        (kinds.OrAuto(kinds.Boolean()), "sometimes", "expected true or false or auto"),
        (kinds.OrAuto(kinds.Integer()), 1.5, "expected a whole number or auto"),
        (kinds.Seconds(), "soon", "expected a number of seconds"),
        (kinds.Seconds(), "nan", "expected a number of seconds"),
        (kinds.Milliseconds(), "soon", "expected milliseconds such as 500-3000 or 1000"),
        (kinds.Milliseconds(), "500-", "expected milliseconds such as 500-3000 or 1000"),
        (kinds.Bytes(), "2X", "expected a number of bytes such as 65536, 512K or 2M"),
        (kinds.Umask(), "09", "expected an octal number such as 022"),
        (kinds.Boolean(), "maybe", "expected true or false"),
        (kinds.Preloading(), "molds", "expected true or false or mold"),
        (kinds.CanarySize(), "one", "expected a whole number or a share such as 10%"),
        (kinds.CanarySize(), "1.5%", "expected a number, or a share such as 10%"),
        (kinds.CanarySize(), True, "expected a whole number or a share such as 10%"),
        (kinds.Boolean(), 1, "expected true or false"),
        (kinds.Text(), 1, "expected a text"),
        (kinds.TextList(), 1, "expected a list of texts"),
        (kinds.HeaderValues(), 1, "expected a dict of header names and values"),
    ],
)
def test_what_is_no_such_value_at_all(kind: kinds.Kind[object], raw: object, words: str) -> None:
    with pytest.raises(kinds.Malformed) as caught:
        kind.parse(raw)
    assert str(caught.value) == words


@pytest.mark.parametrize(
    ("kind", "raw", "words"),
    [
        (kinds.Integer(min=1), "0", "expected at least 1"),
        (kinds.Integer(max=5), 6, "expected at most 5"),
        (kinds.Milliseconds(), "3000-500", "expected the shorter time first, as in 500-3000"),
        (kinds.Milliseconds(), "3600001", "expected at most 3600000"),
        (kinds.Integer(), "-1", "expected at least 0"),
        (kinds.OrAuto(kinds.Integer()), "-1", "expected at least 0"),
        (kinds.Seconds(), "inf", "expected at most 86400"),
        (kinds.Umask(), "01000", "expected at most 511"),
        (kinds.Choice(("info", "debug")), "inf", "expected one of info, debug; did you mean 'info'?"),
        (kinds.Choice(("info", "debug")), "x", "expected one of info, debug"),
        (Addresses(), [], "expected at least one address"),
        (kinds.EnvAssignments(), ["A"], "expected KEY=VALUE, got 'A'"),
        (kinds.EnvAssignments(), ["=A"], "expected KEY=VALUE, got '='"),
        (kinds.Networks(), "*,::1", "expected either * or a list of addresses, not both"),
        (kinds.Networks(), "10.0.0.1/8", "expected IP addresses or networks: 10.0.0.1/8 has host bits set"),
    ],
)
def test_what_is_understood_and_refused(kind: kinds.Kind[object], raw: object, words: str) -> None:
    with pytest.raises(kinds.Refused) as caught:
        kind.parse(raw)
    assert str(caught.value) == words


class TestPaths:
    @pytest.mark.parametrize("text", ["/healthz", "/", "/a/b-c_d.e~%20", " /x "])
    def test_a_path_of_a_url(self, text: str) -> None:
        assert kinds.UrlPath().parse(text) == text.strip()

    @pytest.mark.parametrize("text", ["", "x", "/a b", "/a?b", "/a#b", "/ä", "/a\tb", "http://x/"])
    def test_validator_refuses_a_value(self, text: str) -> None:
        with pytest.raises(kinds.Refused, match="expected a path such as /healthz"):
            kinds.UrlPath().parse(text)

    def test_a_path_object_is_a_text(self) -> None:
        assert kinds.Text().parse(Path("a/b")) == "a/b"


def test_a_list_of_addresses_may_be_empty_where_that_means_something() -> None:
    assert Addresses(least=0).parse([]) == ()
    with pytest.raises(kinds.Refused, match="expected at least one address"):
        Addresses().parse([])


def test_assignments_may_be_a_table() -> None:
    assert kinds.EnvAssignments().parse({"A": "1", "B": "x=y z"}) == (("A", "1"), ("B", "x=y z"))
    with pytest.raises(kinds.Malformed):
        kinds.EnvAssignments().parse({"A": 1})
