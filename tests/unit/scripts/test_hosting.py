"""Files for the hosting and for images: their schemas take them, and what they repeat is what the project says."""

from __future__ import annotations

import io
import json
import re
import shutil
import subprocess
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from dockerfile_parse import DockerfileParser

from scripts.rendered import ROOT
from scripts.try_wheel import wheel_of

GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
FORMS = sorted(path for path in (GITHUB / "ISSUE_TEMPLATE").glob("*.yml") if path.name != "config.yml")
PYPROJECT = (ROOT / "pyproject.toml").read_text()
PYTHONS = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', PYPROJECT)
"""By the classifiers; Python 3.10 has no parser of TOML."""


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def conforms(path: Path, schema: str) -> None:
    vendored = resources.files("check_jsonschema") / "builtin_schemas" / "vendor" / f"{schema}.json"
    # YAML 1.1 reads the key `on` as a truth value; JSON has texts alone.
    text = {("on" if key is True else key): value for key, value in read(path).items()}
    jsonschema.validate(text, json.loads(vendored.read_text()))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_conforms(path: Path) -> None:
    conforms(path, "github-workflows")


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actionlint_finds_nothing(path: Path) -> None:
    if shutil.which("actionlint") is None:
        pytest.skip("actionlint is not installed")
    done = subprocess.run(["actionlint", str(path)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout


def test_templates_of_issues_conform() -> None:
    assert len(FORMS) >= 2
    for path in FORMS:
        conforms(path, "github-issue-forms")
    conforms(GITHUB / "ISSUE_TEMPLATE" / "config.yml", "github-issue-config")


def test_wheels_are_built_for_each_python_that_is_supported() -> None:
    release = read(GITHUB / "workflows" / "release.yml")
    assert release["env"]["PYTHONS"].split() == PYTHONS
    assert f'requires-python = ">={PYTHONS[0]}"' in PYPROJECT


def test_wheels_are_built_for_each_platform_and_tried_before_they_are_published() -> None:
    jobs = read(GITHUB / "workflows" / "release.yml")["jobs"]
    matrix = jobs["linux"]["strategy"]["matrix"]
    assert matrix["libc"] == ["2_17", "musllinux_1_2"]
    assert [each["arch"] for each in matrix["include"]] == ["x86_64", "aarch64"]
    assert [each["runner"] for each in matrix["include"]] == matrix["runner"]
    after = {name for name, job in jobs.items() if job.get("needs") == "publish"}
    assert set(jobs["publish"]["needs"]) == set(jobs) - {"publish", "version", *after}
    for name in ("linux", "packages", "source"):
        runs = [step.get("run", "") for step in jobs[name]["steps"]]
        uploads = [step.get("uses", "").startswith("actions/upload-artifact") for step in jobs[name]["steps"]]
        assert any("scripts/try_wheel.py" in run for run in runs[: uploads.index(True)]), name


def test_a_release_runs_the_tests_and_publishes_every_distribution() -> None:
    jobs = read(GITHUB / "workflows" / "release.yml")["jobs"]
    assert [step["run"] for step in jobs["test"]["steps"] if "run" in step] == [".ci/run"]
    (build,) = (step["run"] for step in jobs["packages"]["steps"] if "pip wheel" in step.get("run", ""))
    assert "./packages/tricorn-*" in build
    assert "./distributions/tricorn-as-gunicorn" in build
    assert "--portable pure" in build, "the wheel for systems without the core"
    (download,) = (step["with"] for step in jobs["publish"]["steps"] if "download-artifact" in step.get("uses", ""))
    assert download["pattern"] == "{wheels-linux-*,packages,source}"


def test_a_release_checks_what_the_index_will_show() -> None:
    metadata = read(GITHUB / "workflows" / "release.yml")["jobs"]["metadata"]
    (run,) = (step["run"] for step in metadata["steps"] if "run" in step)
    assert "scripts/check_metadata.py dist/* --address $ADDRESS" in run
    (download,) = (step["with"] for step in metadata["steps"] if "download-artifact" in step.get("uses", ""))
    assert download["pattern"] == "{wheels-linux-*,packages,source}"


def test_the_version_is_the_same_everywhere() -> None:
    (version,) = re.findall(r'^__version__ = "(.+)"$', (ROOT / "python/tricorn/version.py").read_text(), re.MULTILINE)
    assert f'version = "{version}"' in (ROOT / "Cargo.toml").read_text()
    chart = read(ROOT / "deploy/helm/tricorn/Chart.yaml")
    assert (chart["version"], chart["appVersion"]) == (version, version)


def test_what_is_released_has_no_paths_of_a_machine_and_the_address_of_the_repository() -> None:
    jobs = read(GITHUB / "workflows" / "release.yml")["jobs"]
    for name in ("linux", "source"):
        steps = jobs[name]["steps"]
        build = next(number for number, step in enumerate(steps) if step.get("uses", "").startswith("PyO3/maturin"))
        assert any("scripts/set_address.py" in step.get("run", "") for step in steps[:build]), name
    steps = jobs["linux"]["steps"]
    runs = [step.get("run", "") for step in steps]
    finished = next(number for number, run in enumerate(runs) if "scripts/finish_wheel.py" in run)
    tried = next(number for number, run in enumerate(runs) if "scripts/try_wheel.py" in run)
    assert finished < tried, "what is tried is what is published"
    assert "--remap-path-prefix" in next(
        step["env"]["RUSTFLAGS"] for step in steps if "RUSTFLAGS" in step.get("env", {})
    )


def test_each_push_is_tested_on_each_python_that_is_supported() -> None:
    jobs = read(GITHUB / "workflows" / "test.yml")["jobs"]
    assert jobs["test"]["strategy"]["matrix"]["python"] == [*PYTHONS, f"{PYTHONS[-1]}t"]
    assert jobs["test"]["continue-on-error"] == f"${{{{ matrix.python == '{PYTHONS[-1]}t' }}}}"
    assert [step["run"] for step in jobs["test"]["steps"] if "run" in step] == [".ci/run"]
    assert (ROOT / ".ci/run").exists()
    uploads = [step for step in jobs["test"]["steps"] if step.get("uses", "").startswith("actions/upload-artifact")]
    assert [step["with"]["path"] for step in uploads] == ["dist/tests/"]


def test_tests_that_need_root_run_as_root_with_what_they_need() -> None:
    runs = [step["run"] for step in read(GITHUB / "workflows" / "test.yml")["jobs"]["root"]["steps"] if "run" in step]
    assert runs == [".ci/root make tools .venvs/cluster/.setup test"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_by_hash(path: Path) -> None:
    used = [step["uses"] for job in read(path)["jobs"].values() for step in job["steps"] if "uses" in step]
    assert used
    assert [each for each in used if not re.fullmatch(r"[\w.-]+/[\w.-]+@[0-9a-f]{40}", each)] == []


# ---- The list of checks


def hooks() -> dict[str, dict[str, Any]]:
    (repository,) = read(ROOT / ".pre-commit-config.yaml")["repos"]
    return {hook["id"]: hook for hook in repository["hooks"]}


def test_each_page_that_is_rendered_has_its_check() -> None:
    entries = " ".join(hook["entry"] for hook in hooks().values())
    scripts = [path for folder in ("scripts", "benches/render") for path in (ROOT / folder).glob("*.py")]
    checked = {path for path in scripts if "--check   " in path.read_text()}
    assert len(checked) >= 8
    for path in checked:
        script = path.relative_to(ROOT).as_posix()
        module = script.removesuffix(".py").replace("/", ".")
        assert f"{script} --check" in entries or f"{module} --check" in entries, script


@pytest.mark.parametrize(
    ("hook", "path", "bad", "good"),
    [
        ("leftover-markers", "docs/a.md", "TO" + "DO: later", "to do"),
        ("leftover-markers", "python/a.py", 7 * "<" + " main", "a << b"),
        ("leftover-markers", "crates/a/src/a.rs", "dbg" + "!(x)", "todo(x)"),
        ("machine-paths", "docs/a.md", "in /ho" + "me/me/x", "in /opt/homes"),
        ("machine-paths", "docs/a.md", "/ro" + "ot/x", "site/ro" + "ot/x"),
        ("titles", "python/tricorn/a.py", '    """What it is."""', '    """Returns what it is."""'),
        ("unpatched", "python/tricorn/arbiter/a.py", "import socket", "from signal import Signals"),
    ],
)
def test_words_that_no_linter_knows(hook: str, path: str, bad: str, good: str) -> None:
    found = hooks()[hook]
    assert found["language"] == "pygrep"
    assert re.search(found.get("files", ""), path)
    assert not re.search(found.get("exclude", "^$"), path)
    assert re.search(found["entry"], bad)
    assert not re.search(found["entry"], good)


# ---- The image


def dockerfile() -> list[tuple[str, str]]:
    parser = DockerfileParser(fileobj=io.BytesIO((ROOT / "Dockerfile").read_bytes()))
    return [(each["instruction"], each["value"]) for each in parser.structure if each["instruction"] != "COMMENT"]


def test_the_image_has_what_was_built_and_no_compiler() -> None:
    steps = dockerfile()
    last = max(number for number, (name, _) in enumerate(steps) if name == "FROM")
    assert [value.split()[0] for name, value in steps if name == "FROM"][-2:] == ["python:${PYTHON}-slim"] * 2
    image = dict(steps[last:])
    assert image["USER"] == "10001:10001"
    assert image["STOPSIGNAL"] == "SIGTERM"
    assert json.loads(image["ENTRYPOINT"]) == ["tricorn"]
    assert "COPY" not in image
    (default,) = (value.partition("=")[2] for name, value in steps if name == "ARG")
    assert default in PYTHONS


def test_the_image_is_built_with_the_compiler_of_the_project() -> None:
    (channel,) = re.findall(r'^channel = "(.+)"$', (ROOT / "rust-toolchain.toml").read_text(), re.MULTILINE)
    text = (ROOT / "Dockerfile").read_text()
    assert f"FROM rust:{channel}-slim AS rust\n" in text
    assert f"RUSTUP_TOOLCHAIN={channel} " in text


def test_the_context_of_the_image_has_what_the_wheel_is_built_from() -> None:
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    assert lines[1] == "*"
    kept = {line[1:].rstrip("/") for line in lines if line.startswith("!")}
    assert all((ROOT / name).exists() for name in kept)
    (readme,) = re.findall(r'^readme = "(.+)"', PYPROJECT, re.MULTILINE)
    (license_file,) = re.findall(r'^license-files = \["(.+)"\]', PYPROJECT, re.MULTILINE)
    (source,) = re.findall(r'^python-source = "(.+)"', PYPROJECT, re.MULTILINE)
    members = re.findall(
        r'"([\w-]+)/[\w-]+"', (ROOT / "Cargo.toml").read_text().partition("members")[2].partition("]")[0]
    )
    assert {readme, license_file, source, *members, "packages", "pyproject.toml", "Cargo.toml", "Cargo.lock"} <= kept


# ---- The trial of wheels


def test_the_wheel_of_an_interpreter_is_found_by_its_tag(tmp_path: Path) -> None:
    for tag in ("cp311", "cp313", "cp313t"):
        (tmp_path / f"tricorn-0.1.0-cp313-{tag}-linux.whl").touch()
    (tmp_path / "tricorn-0.1.0-cp311-cp311-linux.whl").touch()
    assert wheel_of(tmp_path, (3, 13)).name == "tricorn-0.1.0-cp313-cp313-linux.whl"
    with pytest.raises(SystemExit, match=r"one wheel for cp310 was expected, found \[\]"):
        wheel_of(tmp_path, (3, 10))
