"""The command `gunicorn`, for programs that start it in their own process."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from tricorn.compat.absent import refuse
from tricorn.errors import ConfigError
from tricorn.gateway import app_loader

from .base import Application


class WSGIApplication(Application):
    """Serves what the command line or `wsgi_app` names."""

    app_uri: str | None = None

    def init(self, parser: argparse.ArgumentParser, opts: argparse.Namespace, args: Sequence[str]) -> Any:
        self.app_uri = None
        if args:
            self.cfg.set("default_proc_name", args[0])
            self.app_uri = args[0]

    def load_config(self) -> None:
        super().load_config()
        if self.app_uri is None:
            if self.cfg.wsgi_app is None and type(self).load is WSGIApplication.load:
                raise ConfigError("No application module specified.")
            self.app_uri = self.cfg.wsgi_app

    def load_wsgiapp(self) -> Any:
        return app_loader.load(self.app_uri or "")

    def load_pasteapp(self) -> Any:
        return app_loader.load_paste(self.cfg.paste, self.cfg.paste_global_conf)

    def load(self) -> Any:
        return self.load_wsgiapp() if self.cfg.paste is None else self.load_pasteapp()


def run(prog: str | None = None) -> None:
    WSGIApplication("%(prog)s [OPTIONS] [APP_MODULE]", prog=prog).run()


if __name__ == "__main__":
    run()

__getattr__ = refuse(__name__)
