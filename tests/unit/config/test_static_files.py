"""Values of `static_map`, `static_index` and `static_cache_control`."""

from __future__ import annotations

from pathlib import Path

import pytest
from tricorn.config.resolve import Layer, Raw, resolve
from tricorn.config.static_files import CacheControl, IndexFile, SendfileRoots, StaticMap, mapping, root
from tricorn.config.validators import Invalid
from tricorn.workers.core_options import static_map, x_sendfile

from tests.harness import with_each

KIND = StaticMap()


def test_a_mapping_has_a_directory_and_options() -> None:
    found = mapping("/static/ = /srv/static , max-age=60, Immutable,miss=404")
    assert (found.prefix, found.directory, found.falls_through) == ("/static", "/srv/static", False)
    assert found.directives == ("max-age=60", "immutable")
    assert mapping("/=files").prefix == ""
    assert mapping("/a=b=c,miss=app").directory == "b=c"
    assert mapping("/a=b=c,miss=app").falls_through


def test_it_is_given_as_texts_lines_or_a_dict() -> None:
    expected = ("/a=one,max-age=1", "/b=two")
    assert KIND.parse(["/a=one,max-age=1", "/b=two"]) == expected
    assert KIND.parse("\n/a=one,max-age=1\n /b=two\n") == expected
    assert KIND.parse({"/a": "one,max-age=1", "/b": "two"}) == expected
    assert KIND.parse("") == KIND.parse([]) == ()


@with_each(
    ("raw", "words"),
    [
        (["static=/srv"], "expected a prefix that begins with a slash, got 'static'"),
        (["/static"], "expected PREFIX=DIRECTORY such as"),
        (["/static="], "expected PREFIX=DIRECTORY such as"),
        (["/static=,max-age=1"], "expected PREFIX=DIRECTORY such as"),
        (["/a=x", "/a/=y"], "expected each prefix once, got /a 2 times"),
        (["/=x", "/=y"], "expected each prefix once, got / 2 times"),
        (["/a//b=x"], "expected a prefix such as /static"),
        (["/a/../b=x"], "expected a prefix such as /static"),
        (["/a%20b=x"], "as the decoded path has it, got '/a%20b'"),
        (["/a?b=x"], "expected a prefix such as /static"),
        (["/a=x,max-age"], "expected max-age=SECONDS, got 'max-age'"),
        (["/a=x,max-age=-1"], "expected max-age=SECONDS"),
        (["/a=x,imutable"], "immutable"),
        (["/a=x,immutable=1"], "expected a directive of Cache-Control"),
        (["/a=x,miss=403"], "expected miss=app or miss=404, got miss=403"),
        (7, "expected texts such as"),
        ([7], "expected"),
    ],
)
def test_what_is_no_map_says_what_was_expected(raw: object, words: str) -> None:
    with pytest.raises(Invalid) as caught:
        KIND.parse(raw)
    assert words in str(caught.value)


def test_directories_are_there(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "file").touch()
    KIND.look_up(("/a=files", f"/b={tmp_path}"), str(tmp_path))
    for missing in ("none", "file"):
        with pytest.raises(Invalid, match=f"the directory '{missing}' does not exist"):
            KIND.look_up((f"/a={missing}",), str(tmp_path))


def test_roots_of_x_sendfile(tmp_path: Path) -> None:
    kind = SendfileRoots()
    assert kind.parse(["/srv/files", "/protected=/srv/media"]) == ("/srv/files", "/protected=/srv/media")
    assert kind.parse("/srv/files\n/p=/srv/media\n") == ("/srv/files", "/p=/srv/media")
    assert (root("/srv/files"), root("/p/=media")) == ((None, "/srv/files"), ("/p", "media"))
    for bad in ("protected=/srv", "/=/srv", "/protected="):
        with pytest.raises(Invalid, match="expected"):
            kind.parse([bad])
    with pytest.raises(Invalid, match="does not exist"):
        kind.look_up(("/p=none",), str(tmp_path))
    (tmp_path / "files").mkdir()
    given = {"chdir": str(tmp_path), "x_sendfile": ["files", "/p=files/"]}
    config = resolve([Layer({name: Raw(value, "conf.py") for name, value in given.items()})])
    assert x_sendfile(config) == [(None, f"{tmp_path}/files"), ("/p", f"{tmp_path}/files")]


def test_cache_control_is_checked() -> None:
    assert CacheControl().parse(" Public,max-age=60 ") == "public, max-age=60"
    assert CacheControl().parse("") == CacheControl().parse(None) == ""
    with pytest.raises(Invalid, match="max-age"):
        CacheControl().parse("max_age=60")


def test_an_index_is_a_file_of_the_directory() -> None:
    assert (IndexFile().parse("index.htm"), IndexFile().parse("")) == ("index.htm", "")
    for bad in ("a/b", "../index.html", ".index"):
        with pytest.raises(Invalid, match="name of a file"):
            IndexFile().parse(bad)


def test_the_core_gets_whole_paths(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    maps = ["/a=files,max-age=1", "/b=files,miss=404"]
    given = {"chdir": str(tmp_path), "static_map": maps, "static_cache_control": "no-cache", "static_index": ""}
    config = resolve([Layer({name: Raw(value, "conf.py") for name, value in given.items()})])
    assert static_map(config) == [
        ("/a", f"{tmp_path}/files", "max-age=1", "", True),
        ("/b", f"{tmp_path}/files", "no-cache", "", False),
    ]
