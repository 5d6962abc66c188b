"""Which layer wins, and what is said when it is wrong."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from tricorn.config.command_line import read_arguments, read_environment_arguments
from tricorn.config.config import Config
from tricorn.config.resolve import Layer, Raw, read_environment, read_platform, resolve
from tricorn.config.unavailable import judge
from tricorn.errors import ConfigError


def configure(argv: str = "", environ: Mapping[str, str] | None = None) -> Config:
    environ = environ or {}
    return resolve(
        [
            read_platform(environ),
            read_environment(environ),
            *read_environment_arguments(environ),
            read_arguments(argv.split()),
        ]
    )


def test_defaults_are_gunicorns() -> None:
    config = configure()
    assert config.bind == ("127.0.0.1:8000",)
    assert (config.workers, config.threads, config.worker_class) == (1, 1, "auto")
    assert (config.timeout, config.graceful_timeout, config.keepalive) == (30, 30, 2)
    assert config.origin("workers") == "default"


LAYERS = [
    ({"WEB_CONCURRENCY": "2"}, "", 2, "WEB_CONCURRENCY"),
    ({"TRICORN_WORKERS": "3"}, "", 3, "TRICORN_WORKERS"),
    ({"GUNICORN_CMD_ARGS": "-w 4"}, "", 4, "--workers in GUNICORN_CMD_ARGS"),
    ({"TRICORN_CMD_ARGS": "--workers=5"}, "", 5, "--workers in TRICORN_CMD_ARGS"),
    ({}, "-w 6", 6, "--workers"),
]


@pytest.mark.parametrize("strongest", range(len(LAYERS)))
def test_each_layer_beats_those_before_it_and_is_named_as_the_origin(strongest: int) -> None:
    environ: dict[str, str] = {}
    argv = ""
    for layer_environ, layer_argv, *_ in LAYERS[: strongest + 1]:
        environ |= layer_environ
        argv = layer_argv
    config = configure(argv, environ)
    assert (config.workers, config.origin("workers")) == LAYERS[strongest][2:]


def test_a_further_source_is_one_more_layer() -> None:
    file = Layer({"workers": Raw(7, "gunicorn.conf.py")})
    config = resolve([read_platform({"WEB_CONCURRENCY": "3"}), file, read_arguments([])])
    assert (config.workers, config.origin("workers")) == (7, "gunicorn.conf.py")


def test_port_means_all_interfaces() -> None:
    assert configure(environ={"PORT": "5000"}).bind == ("0.0.0.0:5000",)


def test_a_bind_on_the_command_line_replaces_the_one_of_the_platform() -> None:
    assert configure("-b :1 -b :2", {"PORT": "5000"}).bind == (":1", ":2")


@pytest.mark.parametrize("text", ["", "  ", "\t\n"])
def test_an_empty_variable_is_ignored_and_said_so(text: str) -> None:
    layer = read_platform({"WEB_CONCURRENCY": text})
    assert layer.values == {}
    assert layer.warnings == ("The environment variable WEB_CONCURRENCY is empty and was ignored.",)


def test_a_misspelt_variable_is_worth_a_warning() -> None:
    layer = read_environment({"TRICORN_WORKRS": "3"})
    assert layer.warnings == ("Unknown environment variable TRICORN_WORKRS; did you mean TRICORN_WORKERS?",)


@pytest.mark.parametrize(
    ("variable", "meant"),
    [
        ("TRICORN_LOG_LEVEL", "TRICORN_LOGLEVEL"),
        ("TRICORN_KEEP_ALIVE", "TRICORN_KEEPALIVE"),
        ("TRICORN_PRELOAD", "TRICORN_PRELOAD_APP"),
        ("TRICORN_TIEMOUT", "TRICORN_TIMEOUT"),
    ],
)
def test_so_is_another_spelling(variable: str, meant: str) -> None:
    (warning,) = read_environment({variable: "1"}).warnings
    assert warning == f"Unknown environment variable {variable}; did you mean {meant}?"


@pytest.mark.parametrize(
    "variable",
    [
        # inherited by a server that a worker starts
        "TRICORN_WORKER",
        # injected by Kubernetes beside a service of that name
        "TRICORN_SERVICE_HOST",
        "TRICORN_SERVICE_PORT",
        "TRICORN_SERVICE_PORT_HTTP",
        "TRICORN_PORT",
        "TRICORN_PORT_8000_TCP",
        "TRICORN_PORT_8000_TCP_ADDR",
        # what images and scripts call theirs
        "TRICORN_VERSION",
        "TRICORN_DIR",
        "TRICORN_HOME",
        "TRICORN_IMAGE",
        "TRICORN_HOST",
    ],
)
def test_other_peoples_variables_are_not(variable: str) -> None:
    assert read_environment({variable: "1"}).warnings == ()


def test_a_setting_of_gunicorns_that_is_not_there_is_refused() -> None:
    (asked,) = read_environment({"TRICORN_DIRTY_APPS": "shop:jobs", "TRICORN_DIRTY_THREADS": "2"}).asked
    with pytest.raises(ConfigError, match="TRICORN_DIRTY_APPS: gunicorn's setting dirty_apps is not available"):
        judge([asked], "refuse")


@pytest.mark.parametrize(
    ("argv", "environ", "words"),
    [
        ("-w 0", {}, "Invalid value for workers: 0 (from --workers): expected at least 1."),
        (
            "",
            {"WEB_CONCURRENCY": "x"},
            "Invalid value for workers: x (from WEB_CONCURRENCY): expected a whole number or auto.",
        ),
        (
            "--log-level inf",
            {},
            "Invalid value for loglevel: inf (from --log-level): expected one of debug, info, warning, "
            "error, critical; did you mean 'info'?",
        ),
    ],
)
def test_a_complaint_names_the_setting_the_value_and_its_origin(
    argv: str, environ: Mapping[str, str], words: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        configure(argv, environ)
    assert str(caught.value) == words


class Thing:
    def method(self) -> None: ...


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (lambda: None, "<lambda>()"),
        (Thing().method, "Thing.method()"),
        (Thing, "the class Thing"),
        (Thing(), "an instance of Thing"),
        (pytest, "the module pytest"),
        (1.5, "1.5"),
        (None, "None"),
        (["1"], "['1']"),
    ],
)
def test_a_complaint_shows_a_value_as_its_author_would_name_it(value: object, shown: str) -> None:
    with pytest.raises(ConfigError) as caught:
        resolve([Layer({"workers": Raw(value, "a file")})])
    assert (
        str(caught.value)
        .removeprefix("Invalid value for workers: ")
        .endswith(" (from a file): expected a whole number or auto.")
    )
    assert shown in str(caught.value)


def test_a_complaint_about_one_variable_does_not_show_the_others() -> None:
    with pytest.raises(ConfigError) as caught:
        configure("-e PASSWORD=hunter2 -e DEBUG")
    assert str(caught.value) == "Invalid value for raw_env (from --env): expected KEY=VALUE, got 'DEBUG'."


def test_a_value_that_lost_is_not_looked_at() -> None:
    assert configure("-w 2", {"WEB_CONCURRENCY": "x"}).workers == 2
