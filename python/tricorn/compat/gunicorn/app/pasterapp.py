"""PasteDeploy: `[server:main] use = egg:gunicorn#main`, and for this server by its own name `egg:tricorn`."""

from __future__ import annotations

import configparser
import os
from collections.abc import Callable, Mapping
from typing import Any

from tricorn.compat.absent import refuse
from tricorn.gateway import app_loader

from .wsgiapp import WSGIApplication


def get_wsgi_app(config_uri: str, name: str | None = None, defaults: Mapping[str, str] | None = None) -> Any:
    path = config_uri.removeprefix("config:")
    return app_loader.load_paste(f"{path}#{name}" if name else path, defaults or {})


def has_logging_config(config_file: str) -> bool:
    parser = configparser.ConfigParser()
    parser.read([config_file])
    return parser.has_section("loggers")


def serve(app: Callable[..., Any], global_conf: Mapping[str, str], **local_conf: Any) -> None:
    """Serves what is described beside it; the section's other keys are settings. Does not return."""
    config_file = global_conf["__file__"]
    file = local_conf.pop("config", None)
    host, port = local_conf.pop("host", ""), local_conf.pop("port", "")
    if host:
        local_conf["bind"] = f"{host}:{port}" if port else host.split(",")

    class PasterServerApplication(WSGIApplication):
        def load_config(self) -> None:
            self.app_uri = config_file
            if has_logging_config(config_file):
                self.cfg.set("logconfig", config_file)
            if file or os.path.exists("gunicorn.conf.py"):
                self.load_config_from_file(file or "gunicorn.conf.py")
            for key, value in local_conf.items():
                if value is not None:
                    self.cfg.set(key.lower(), value)

        def load(self) -> Any:
            return app

    PasterServerApplication().run()


__getattr__ = refuse(__name__)
