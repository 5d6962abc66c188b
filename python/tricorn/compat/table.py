"""What is served, module by module. A text `module:name` is looked up when it is first asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

VERSION = (27, 0, 1)
"""The gunicorn whose behaviour is promised."""


@dataclass(frozen=True, slots=True)
class Value:
    """A constant, as it is."""

    value: object


_UTIL = "tricorn.compat.util"

MODULES: Mapping[str, Mapping[str, str | Value]] = {
    "gunicorn": {
        "version_info": Value(VERSION),
        "__version__": Value(".".join(map(str, VERSION))),
        # Assigned to by files that want to hide the server's name. They may; it changes nothing.
        "SERVER": Value("gunicorn"),
        "SERVER_SOFTWARE": Value("gunicorn/" + ".".join(map(str, VERSION))),
    },
    "gunicorn.glogging": {
        "Logger": "tricorn.log.logger:Logger",
        "SafeAtoms": "tricorn.log.atoms:SafeAtoms",
        "CONFIG_DEFAULTS": "tricorn.log.configured:CONFIG_DEFAULTS",
        "loggers": "tricorn.log.names:all_loggers",
    },
    "gunicorn.errors": {
        "ConfigError": "tricorn.errors:ConfigError",
        "AppImportError": "tricorn.errors:AppImportError",
        "HaltServer": "tricorn.compat.classes:HaltServer",
    },
    "gunicorn.arbiter": {
        "Arbiter": "tricorn.compat.classes:Arbiter",
    },
    "gunicorn.workers": {},
    "gunicorn.workers.base": {
        "Worker": "tricorn.workers.base:Worker",
    },
    "gunicorn.config": {
        "Config": "tricorn.config.config:Config",
        "PLATFORM": "sys:platform",
        "get_default_config_file": f"{_UTIL}:get_default_config_file",
    },
    "gunicorn.util": {
        "_setproctitle": f"{_UTIL}:set_title",
        "bytes_to_str": f"{_UTIL}:bytes_to_str",
        "check_is_writable": f"{_UTIL}:check_is_writable",
        "chown": "os:chown",
        "close_on_exec": f"{_UTIL}:close_on_exec",
        "getcwd": "tricorn.config.load:working_directory",
        "http_date": f"{_UTIL}:http_date",
        "import_app": "tricorn.gateway.app_loader:load",
        "is_ipv6": f"{_UTIL}:is_ipv6",
        "load_class": f"{_UTIL}:load_class",
        "parse_address": f"{_UTIL}:parse_address",
        "set_non_blocking": f"{_UTIL}:set_non_blocking",
        "to_bytestring": f"{_UTIL}:to_bytestring",
        "unlink": f"{_UTIL}:unlink",
        "warn": f"{_UTIL}:warn",
    },
}

PACKAGES = ("gunicorn", "gunicorn.workers")

ALWAYS_OURS = ("gunicorn.glogging",)
"""Served even if gunicorn is installed."""
