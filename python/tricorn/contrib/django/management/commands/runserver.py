"""`manage.py runserver`, with tricorn as the server.

The command checks the project and becomes the server (exec): Django has loaded the project already, and workers that
were forked from such a process would have its old code after a reload.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

from django.apps import apps
from django.conf import ENVIRONMENT_VARIABLE, settings
from django.core.management.base import CommandError
from django.core.management.commands.runserver import Command as Runserver

from tricorn.contrib.command import THREADS, become_server
from tricorn.version import __version__

TEMPLATES = ("*.html", "*.txt", "*.xml")
"""Files of template directories that a reload watches: Django keeps templates in memory."""


class Command(Runserver):  # type: ignore[misc]  # Django has no types
    help = "Starts tricorn for development: it reloads code, and serves static files."

    def add_arguments(self, parser: Any) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--noasgi",
            action="store_false",
            dest="use_asgi",
            help="Serve WSGI_APPLICATION even if ASGI_APPLICATION is set.",
        )
        if apps.is_installed("django.contrib.staticfiles"):
            parser.add_argument(
                "--nostatic",
                action="store_false",
                dest="use_static_handler",
                help="Tells Django to NOT automatically serve static files at STATIC_URL.",
            )
            parser.add_argument(
                "--insecure",
                action="store_true",
                dest="insecure_serving",
                help="Allows serving static files even if DEBUG is False.",
            )

    def run(self, **options: Any) -> None:
        """Starts the server. Called by `handle` with the parsed address."""
        if not os.environ.get(ENVIRONMENT_VARIABLE):
            raise CommandError(f"The server loads the project by its name: set {ENVIRONMENT_VARIABLE}.")
        if not options["skip_checks"]:
            self.stdout.write("Performing system checks...\n\n")
            self.check(display_num_errors=True)
        self.check_migrations()
        self.stdout.write(
            f"Django {self.get_version()} on tricorn {__version__}, using settings {settings.SETTINGS_MODULE!r}\n"
            "Quit the server with CONTROL-C.\n"
        )
        if options["use_reloader"]:
            os.environ["RUN_MAIN"] = "true"  # how applications know the process that serves from the one that watches
        if options["no_color"]:
            os.environ["NO_COLOR"] = "1"
        if options["force_color"]:
            os.environ["FORCE_COLOR"] = "1"
        become_server(self._words(**options), serves=_served(options["use_asgi"]))

    def _words(self, **options: Any) -> Iterator[str]:
        """The command line of tricorn."""
        host = f"[{self.addr}]" if self._raw_ipv6 else "0.0.0.0" if self.addr == "0" else self.addr
        yield from ("--bind", f"{host}:{self.port}", "--access-logfile", "-")
        yield from ("--pythonpath", ",".join(filter(None, (os.path.abspath(sys.path[0]), options["pythonpath"]))))
        if options["use_reloader"]:
            yield "--reload"
            yield from _watched_templates()
        use_asgi = options["use_asgi"] and _asgi_application() is not None
        if not use_asgi:
            yield from ("--threads", str(THREADS if options["use_threading"] else 1))
        serves_static = options.get("use_static_handler", False) and (settings.DEBUG or options["insecure_serving"])
        name = ("asgi" if use_asgi else "wsgi") + ("_with_static_files" if serves_static else "")
        yield from ("--factory", f"tricorn.contrib.django.application:{name}")


def _asgi_application() -> str | None:
    name: str | None = getattr(settings, "ASGI_APPLICATION", None)
    return name


def _served(use_asgi: bool) -> str:
    """The name of the application as the project has it."""
    name = _asgi_application() if use_asgi else None
    return name or settings.WSGI_APPLICATION or f"the project of {settings.SETTINGS_MODULE}"


def _watched_templates() -> Iterator[str]:
    from django.template.autoreload import get_template_directories

    packages = ("site-packages", "dist-packages")
    mine = [path for path in get_template_directories() if path.is_dir() and not set(packages) & set(path.parts)]
    for path in sorted(mine):
        yield from ("--reload-dir", str(path))
    for pattern in TEMPLATES if mine else ():
        yield from ("--reload-include", pattern)
