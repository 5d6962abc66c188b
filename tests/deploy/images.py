"""Images that are built without a registry: podman, and stand-ins for the official images.

```text
  debootstrap ──▶ Debian ──▶ python:3.x-slim     Debian's Python and pip ──────────┐
                                                                                  ├─▶ FROM in a Dockerfile
  the compiler here ───────▶ rust:1.x-slim       what its folder has ──────────────┘
```

All images are in a storage of their own, target/images, so that no program takes a stand-in for the real image. What
debootstrap has brought stays there; `podman --root` of that folder removes it.
"""

from __future__ import annotations

import io
import os
import re
import resource
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.harness.deadline import PATIENCE
from tests.harness.server import free_port

ROOT = Path(__file__).resolve().parent.parent.parent
STORAGE = ROOT / "target/images"
DEBIAN = "localhost/debian:stand-in"
LONG = 1800
"""Seconds for a step that downloads and compiles."""
PROCESSES = 4096

CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
"""What this machine trusts: a mirror of packages may have a certificate of its owner."""
PYTHON = f"""\
FROM {DEBIAN}
COPY ca-certificates.crt pip.conf /etc/
RUN rm -f /usr/lib/python3*/EXTERNALLY-MANAGED && ln -sf python3 /usr/bin/python
RUN mv /etc/ca-certificates.crt {CERTIFICATES}
"""
ELSEWHERE = re.compile(r"(.*/)?(share|lib/rustlib/(src|(?!etc|x86_64|aarch64)[^/]+))(/.*)?")
"""Parts of a compiler's folder that compile nothing for this machine."""


def lacking() -> str | None:
    """Why no image can be built here."""
    if os.geteuid() != 0:
        return "only root can unpack Debian's packages"
    for program in ("podman", "debootstrap"):
        if not shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin"):
            return f"{program} is not installed"
    return None


def podman(*words: str, given: bytes | None = None, within: float = LONG, cwd: Path = ROOT) -> str:
    """Runs podman to its end and returns what it printed; AssertionError with all of it if it fails."""
    done = subprocess.run(_words(*words), input=given, capture_output=True, timeout=within, cwd=cwd, check=False)
    out, err = (text.decode(errors="replace") for text in (done.stdout, done.stderr))
    assert done.returncode == 0, f"podman {' '.join(words)}: status {done.returncode}\n{out[-6000:]}\n{err[-6000:]}"
    return out.strip()


def _words(*words: str) -> list[str]:
    # cgroupfs: without systemd as process 1 there is no other manager. runc: crun wants version 2 of cgroups alone.
    runtime = ["--runtime", "runc"] if shutil.which("runc", path=f"{os.environ.get('PATH', '')}:/usr/sbin") else []
    storage = ["--root", str(STORAGE / "root"), "--runroot", str(STORAGE / "run")]
    return ["podman", *storage, "--cgroup-manager", "cgroupfs", *runtime, *words]


def limits() -> list[str]:
    """Those of this process: root without CAP_SYS_RESOURCE, too, may have them set."""
    _, files = resource.getrlimit(resource.RLIMIT_NOFILE)
    return ["--ulimit", f"nofile={files}:{files}", "--ulimit", f"nproc={PROCESSES}:{PROCESSES}"]


def exists(image: str) -> bool:
    return subprocess.run(_words("image", "exists", image), timeout=PATIENCE, check=False).returncode == 0


def build(folder: Path, tag: str, *words: str) -> None:
    """Builds the folder's Dockerfile; `FROM` finds stand-ins only."""
    podman("build", "--pull=never", "--network=host", "--format=docker", *limits(), "--tag", tag, *words, str(folder))


def make_debian() -> None:
    if exists(DEBIAN):
        return
    STORAGE.mkdir(parents=True, exist_ok=True)
    tree = STORAGE / "debian"
    shutil.rmtree(tree, ignore_errors=True)
    packages = "python3-pip,python3-venv,ca-certificates"
    release = re.search(r"VERSION_CODENAME=(\w+)", Path("/etc/os-release").read_text())
    suite = release[1] if release else "stable"
    made = subprocess.run(
        ["debootstrap", "--variant=minbase", f"--include={packages}", suite, str(tree)],
        capture_output=True,
        timeout=LONG,
        check=False,
    )
    assert made.returncode == 0, made.stdout.decode(errors="replace")[-4000:]
    with subprocess.Popen(["tar", "-C", str(tree), "-c", "."], stdout=subprocess.PIPE) as tar:
        subprocess.run(_words("import", "-", DEBIAN), stdin=tar.stdout, timeout=LONG, capture_output=True, check=True)
    shutil.rmtree(tree)


def make_python(folder: Path) -> str:
    """The stand-in for `python:3.x-slim`, with what this machine says of mirrors. The minor version: Debian's."""
    make_debian()
    shutil.copy(CERTIFICATES, folder / "ca-certificates.crt")
    settings = [path for path in map(Path, ("/etc/pip.conf",)) if path.exists()]
    (folder / "pip.conf").write_text("".join(path.read_text() for path in settings))
    (folder / "Dockerfile").write_text(PYTHON)
    build(folder, "localhost/python:stand-in")
    script = "import sys; print('3.%d' % sys.version_info.minor)"
    minor = podman("run", "--rm", "--network=host", *limits(), "localhost/python:stand-in", "python", "-c", script)
    podman("tag", "localhost/python:stand-in", f"docker.io/library/python:{minor}-slim")
    return minor


def make_rust() -> None:
    """The stand-in for the image that the Dockerfile takes its compiler from, by the name that it has there."""
    named = re.search(r"^FROM (rust:\S+) AS", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert named
    image = f"docker.io/library/{named[1]}"
    if exists(image):
        return
    compiler = subprocess.run(["rustc", "--print", "sysroot"], cwd=ROOT, capture_output=True, text=True, check=True)
    with subprocess.Popen(_words("import", "-", image), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as into:
        assert into.stdin is not None
        with tarfile.open(fileobj=into.stdin, mode="w|") as tar:
            sysroot = compiler.stdout.strip()
            tar.add(sysroot, "usr/local/rustup", filter=lambda info: None if ELSEWHERE.fullmatch(info.name) else info)
            for program in ("cargo", "rustc"):
                link = tarfile.TarInfo(f"usr/local/cargo/bin/{program}")
                link.type, link.linkname = tarfile.SYMTYPE, f"/usr/local/rustup/bin/{program}"
                tar.addfile(link)
            settings = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo")) / "config.toml"
            text = settings.read_bytes() if settings.exists() else b""
            config = tarfile.TarInfo("usr/local/cargo/config.toml")
            config.size = len(text)
            tar.addfile(config, io.BytesIO(text))
        into.stdin.close()
        assert into.wait(LONG) == 0


class Container:
    """A container that runs, and its port on loopback."""

    def __init__(self, name: str, port: int) -> None:
        self.name, self.address = name, ("127.0.0.1", port)

    def run(self, *words: str) -> str:
        """What a program prints that is run in it."""
        return podman("exec", self.name, *words, within=PATIENCE)

    def says(self, what: str) -> str:
        return podman("inspect", "--format", what, self.name, within=PATIENCE)

    @property
    def log(self) -> str:
        done = subprocess.run(_words("logs", self.name), capture_output=True, timeout=PATIENCE, check=False)
        return (done.stdout + done.stderr).decode(errors="replace")


@contextmanager
def container(image: str, *command: str, options: tuple[str, ...] = (), port: int | None = None) -> Iterator[Container]:
    """Runs an image as a pod of the chart does: no capability, and nothing to write to but a volume at /tmp.

    `port`: the one that its configuration names, if it does.
    """
    port = port or free_port()
    name = f"tricorn-test-{port}"
    locked = ("--read-only", "--read-only-tmpfs=false", "--volume", "/tmp", "--cap-drop=all")
    locked += ("--security-opt=no-new-privileges",)
    place = ("--network=host", "--env", f"TRICORN_BIND=127.0.0.1:{port}", "--name", name)
    podman("run", "--detach", *limits(), *locked, *place, *options, image, *command, within=PATIENCE)
    try:
        yield Container(name, port)
    finally:
        podman("rm", "--force", "--time", "0", name, within=PATIENCE)
