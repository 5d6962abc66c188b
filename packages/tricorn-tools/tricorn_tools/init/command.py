"""`tricorn init KIND [OPTIONS] [APP_MODULE]`: prints files, or writes them into a directory."""

from __future__ import annotations

import argparse
import getpass
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence

from tricorn.errors import ConfigError, ExitCode, TricornError
from tricorn.record import Record
from tricorn.spelling import hint
from tricorn_tools.init import additions, apache, compose, docker, envoy, front_end, haproxy, kubernetes, nginx, systemd
from tricorn_tools.init.request import Request, read
from tricorn_tools.init.service import Rendered, Service

PROG = "tricorn init"


class Kind(Record):
    about: str
    options: Callable[[argparse.ArgumentParser], None]
    render: Callable[[Request, argparse.Namespace], Rendered]
    needs_application: bool = True


def main(words: Sequence[str]) -> int:
    """Returns the exit status: 1 if a setting cannot be used or a file is there, 2 for a wrong command line."""
    if not words or words[0] in ("-h", "--help"):
        print(_overview())
        return ExitCode.OK if words else ExitCode.USAGE
    name, kind = words[0], KINDS.get(words[0])
    if kind is None:
        print(f"{PROG}: error: there is no kind {name!r}{hint(name, KINDS)}\n\n{_overview()}", file=sys.stderr)
        return ExitCode.USAGE
    options, rest = _parser(name, kind).parse_known_args(words[1:])
    try:
        return _print(name, kind, options, rest)
    except TricornError as error:
        return error.report()


def _overview() -> str:
    width = max(map(len, KINDS))
    rows = (f"  {name:{width}}  {kind.about}" for name, kind in KINDS.items())
    return "\n".join(
        (
            f"usage: {PROG} KIND [-o DIR [--force]] [OPTIONS] [APP_MODULE]",
            "",
            "Print files for the server's supervisor or proxy, from the configuration that",
            "`tricorn [OPTIONS] [APP_MODULE]` would use here. Without -o nothing is written.",
            "",
            "kinds:",
            *rows,
            "",
            f"`{PROG} KIND --help` lists further options. Exit status: 0 success, 1 an unsuitable setting",
            "or an existing file, 2 usage error.",
        )
    )


def _parser(name: str, kind: Kind) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"{PROG} {name}",
        usage=f"{PROG} {name} [-o DIR [--force]] [OPTIONS] [APP_MODULE]",
        description=f"Prints {kind.about} All other options are those of tricorn: `tricorn --help`.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "-o", "--output", metavar="DIR", help="write the files to this directory; existing files are kept"
    )
    parser.add_argument("--force", action="store_true", help="with -o: replace existing files")
    kind.options(parser)
    return parser


def _print(name: str, kind: Kind, options: argparse.Namespace, rest: Sequence[str]) -> int:
    import tricorn.unpatched  # noqa: F401  (first of all: a configuration file may patch)
    from tricorn import compat
    from tricorn.compat.assigned import with_assigned
    from tricorn.config.load import Sources, load

    compat.install()
    sources = Sources.here(rest)
    loaded = with_assigned(load(sources, needs_application=kind.needs_application))
    request = read(name, loaded, sources.argv, sources.environ, sources.cwd)
    rendered = kind.render(request, options)
    if options.output is None:
        sys.stdout.write(_as_one(rendered))
    else:
        _write(rendered, options.output, force=options.force)
    sys.stdout.flush()
    said = [addition.sentence for addition in request.additions]
    for sentence in (*said, *request.notes, *rendered.notes):
        print(f"Note: {sentence}", file=sys.stderr)
    return ExitCode.OK


def _as_one(rendered: Rendered) -> str:
    """One file as it is; several with a line before each, which is a comment in all of them."""
    if len(rendered.files) == 1:
        return rendered.files[0].text
    return "\n".join(f"# ---- {file.name}\n{file.text}" for file in rendered.files)


def _write(rendered: Rendered, directory: str, *, force: bool) -> None:
    """All files or none. Raises ConfigError."""
    paths = [os.path.join(directory, file.name) for file in rendered.files]
    there = [path for path in paths if os.path.lexists(path)]
    if there and not force:
        raise ConfigError(f"Nothing written: {', '.join(there)} exists. Use --force to replace it.")
    try:
        os.makedirs(directory, exist_ok=True)
        for path, file in zip(paths, rendered.files, strict=True):
            with open(path, "w", encoding="utf-8") as stream:
                stream.write(file.text)
            print(path)
    except OSError as error:
        raise ConfigError(f"Cannot write {error.filename}: {error.strerror}.") from None


# The kinds


def _systemd_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--socket", action="store_true", help="also print a .socket unit")
    parser.add_argument(
        "--systemd-version",
        metavar="N",
        type=int,
        default=None,
        help=f"for which version; before {systemd.NOTIFY_RELOAD} a reload is a signal (default: this machine's)",
    )


def _systemd(request: Request, options: argparse.Namespace) -> Rendered:
    choices = systemd.Choices(
        socket=options.socket,
        version=options.systemd_version or _version_of_systemd(),
        root=os.geteuid() == 0,
        login="" if os.geteuid() == 0 else getpass.getuser(),
    )
    return systemd.render(request.service, choices)


def _version_of_systemd() -> int:
    """Returns the version on this machine; without systemd, the first one that has all that is used."""
    try:
        done = subprocess.run(["systemctl", "--version"], capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return systemd.NOTIFY_RELOAD
    found = re.match(r"systemd (\d+)", done.stdout)
    return int(found[1]) if found else systemd.NOTIFY_RELOAD


def _no_options(parser: argparse.ArgumentParser) -> None:
    """Adds nothing to the options of all kinds."""


def _tree(directory: str) -> docker.Tree:
    """Lists the directory; pyproject.toml is searched for its table, without a TOML parser."""
    files = frozenset(entry.name for entry in os.scandir(directory) if entry.is_file())
    is_project = False
    if docker.PROJECT in files:
        with open(os.path.join(directory, docker.PROJECT), encoding="utf-8", errors="replace") as stream:
            is_project = re.search(r"^\[project\]", stream.read(), re.MULTILINE) is not None
    return docker.Tree(files, is_project)


def _docker(request: Request, _: argparse.Namespace) -> Rendered:
    return docker.render(request.service, _tree(request.service.directory))


def _compose(request: Request, _: argparse.Namespace) -> Rendered:
    return compose.render(request.service, _tree(request.service.directory))


def _kubernetes_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--image", metavar="IMAGE", default="", help="the image of the container")
    parser.add_argument("--replicas", metavar="N", type=int, default=2, help="number of pods (default: 2)")
    parser.add_argument(
        "--pod-monitor", action="store_true", help="a Prometheus operator PodMonitor instead of annotations"
    )


def _kubernetes(request: Request, options: argparse.Namespace) -> Rendered:
    return kubernetes.render(
        request.service,
        kubernetes.Choices(image=options.image, replicas=options.replicas, pod_monitor=options.pod_monitor),
    )


def _front_end_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--public",
        metavar="ADDRESS",
        default="80",
        help="port or address of the proxy for clients (default: 80)",
    )
    parser.add_argument(
        "--hosts", metavar="HOST,HOST", default="", help="machines that run the server (default: this one)"
    )
    parser.set_defaults(domain="_")


def _site_options(parser: argparse.ArgumentParser) -> None:
    _front_end_options(parser)
    parser.add_argument("--domain", metavar="NAME", default="_", help="host name of the site (default: any)")


def _front_end(
    render: Callable[[Service, front_end.Choices], Rendered],
) -> Callable[[Request, argparse.Namespace], Rendered]:
    def rendered(request: Request, options: argparse.Namespace) -> Rendered:
        hosts = tuple(host.strip() for host in options.hosts.split(",") if host.strip())
        return render(request.service, front_end.Choices(options.public, options.domain, hosts))

    return rendered


KINDS: dict[str, Kind] = {
    "systemd": Kind("a unit for systemd, with --socket also a socket unit.", _systemd_options, _systemd),
    additions.DOCKER: Kind("a Dockerfile and its .dockerignore.", _no_options, _docker),
    additions.COMPOSE: Kind("a compose.yaml for the image of the Dockerfile.", _no_options, _compose),
    additions.KUBERNETES: Kind("a Deployment, a Service and a PodDisruptionBudget.", _kubernetes_options, _kubernetes),
    "nginx": Kind(
        "a site for nginx, in front of the server.", _site_options, _front_end(nginx.render), needs_application=False
    ),
    "apache": Kind(
        "a site for Apache httpd 2.4, in front of the server.",
        _site_options,
        _front_end(apache.render),
        needs_application=False,
    ),
    "haproxy": Kind(
        "a haproxy.cfg, in front of the server.",
        _front_end_options,
        _front_end(haproxy.render),
        needs_application=False,
    ),
    "envoy": Kind(
        "an envoy.yaml, in front of the server.", _front_end_options, _front_end(envoy.render), needs_application=False
    ),
}
