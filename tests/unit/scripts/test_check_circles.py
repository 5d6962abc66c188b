"""Arrows between files are those of the code that runs, and each circle among them is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.check_circles import circles, folders, problems, rust_graph


def crate(folder: Path, **files: str) -> Path:
    """Sources of these files: `a__b` stands for a/b."""
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.rs"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def test_paths_of_the_code_are_arrows(tmp_path: Path) -> None:
    sources = crate(
        tmp_path,
        lib="mod a;\nmod b;\nmod c;\nmod d;\n",
        a="use crate::b::{self, Two as Zwei};\nuse std::io;\nfn x() { crate::c::f(); io::stdin(); }\n",
        b="pub struct Two; // use crate::a\n",
        c='pub fn f() -> &\'static str { "crate::a" }\n',
        d="use crate::b;\npub(in crate::a) fn y() { b::z(); super::c::f(); }\n",
    )
    assert rust_graph(sources) == {
        "lib.rs": set(),
        "a.rs": {"b.rs", "c.rs"},
        "b.rs": set(),
        "c.rs": set(),
        "d.rs": {"b.rs", "c.rs"},
    }


def test_a_name_leads_to_the_file_that_defines_it_through_all_re_exports(tmp_path: Path) -> None:
    sources = crate(
        tmp_path,
        lib="mod room;\nmod a;\npub use room::Thing;\n",
        room__mod="mod inner;\nmod other;\npub use inner::*;\npub use other::Other;\n",
        room__inner="pub struct Thing;\n",
        room__other="pub struct Other;\nuse super::Thing;\n",
        a="use crate::{Thing, room};\nfn f() -> room::Other { room::Other }\n",
    )
    graph = rust_graph(sources)
    assert graph["a.rs"] == {"room/inner.rs", "room/mod.rs", "room/other.rs"}
    assert graph["room/other.rs"] == {"room/inner.rs"}
    assert graph["lib.rs"] == graph["room/mod.rs"] == set(), "what is only handed on is not used"
    assert circles(graph) == set()


@pytest.mark.parametrize("style", ["room__mod", "room"])
def test_a_folder_that_uses_its_child_is_not_used_by_it(tmp_path: Path, style: str) -> None:
    room = "mod child;\npub use child::Part;\npub struct Whole { part: Part }\n"
    sources = crate(tmp_path, lib="mod room;\n", room__child="use super::Whole;\npub struct Part;\n", **{style: room})
    assert circles(rust_graph(sources)) == {frozenset({f"{style.replace('__', '/')}.rs", "room/child.rs"})}


def test_tests_draw_no_arrows(tmp_path: Path) -> None:
    text = "#[cfg(test)]\nmod tests {\n    use crate::b::B;\n    fn f() { super::g() }\n}\n"
    sources = crate(
        tmp_path,
        lib='mod a;\nmod b;\n#[cfg(all(test, target_os = "linux"))]\nmod trial;\n',
        a=text + "pub struct A;\n#[cfg(test)]\nuse crate::b;\n",
        b="use crate::a::A;\n",
        trial="use crate::a::A;\n",
    )
    assert rust_graph(sources) == {"lib.rs": set(), "a.rs": set(), "b.rs": {"a.rs"}}


def test_a_method_call_leads_to_the_file_that_has_the_method(tmp_path: Path) -> None:
    sources = crate(
        tmp_path,
        lib="mod owner;\nmod other;\n",
        owner__mod="mod read;\nmod reply;\npub struct Owner<T>(T);\npub trait Look { fn look(&self); }\n",
        owner__read="use super::{Look, Owner};\nimpl<T> Owner<T> {\n    fn read(&self) { self.reply::<u8>(); { } }\n}\n"
        "impl<T> Look for Owner<T> { fn look(&self) { Self::finish(self) } }\n",
        owner__reply="impl<T> super::Owner<T> {\n    fn reply<U>(&self) { self.read() }\n    fn finish(&self) {}\n}\n"
        "#[cfg(test)]\nmod tests { use super::*; impl Owner<u8> { fn read(&self) {} } }\n",
        other="struct Owner;\nimpl Owner { fn read(&self) {} fn look(&self) { self.read(); self.reply() } }\n",
    )
    graph = rust_graph(sources)
    assert graph["owner/read.rs"] == {"owner/mod.rs", "owner/reply.rs"}
    assert graph["owner/reply.rs"] == {"owner/mod.rs", "owner/read.rs"}
    assert graph["other.rs"] == set(), "it is another type of that name"
    assert circles(graph) == {frozenset({"owner/read.rs", "owner/reply.rs"})}


GRAPH = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": {"d"}, "f": {"a"}}


def test_every_circle_is_found_whole() -> None:
    assert circles(GRAPH) == {frozenset("abc"), frozenset("de")}
    assert circles({"a": {"b"}, "b": {"c"}, "c": set()}) == set()


def test_a_circle_is_told_with_its_arrows() -> None:
    assert list(problems("it", {"a": {"b", "c"}, "b": {"a"}, "c": set()})) == [
        "it: a circle:",
        "    a -> b",
        "    b -> a",
    ]


def test_folders_have_the_arrows_of_their_files() -> None:
    graph = {"a/x.rs": {"a/y.rs", "b/z.rs"}, "a/y.rs": set(), "b/z.rs": {"c.rs"}, "c.rs": {"a/y.rs"}}
    assert circles(graph) == set()
    assert circles(folders(graph)) == {frozenset({"a", "b", "c.rs"})}
