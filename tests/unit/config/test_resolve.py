"""Which layer wins, and what is said when it is wrong."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from tricorn.cli.parser import read_arguments, read_environment_arguments
from tricorn.config.config import Config
from tricorn.config.resolve import Layer, Raw, read_environment, resolve
from tricorn.errors import ConfigError


def configure(argv: str = "", environ: Mapping[str, str] | None = None) -> Config:
    environ = environ or {}
    return resolve([read_environment(environ), *read_environment_arguments(environ), read_arguments(argv.split())])


def test_defaults_are_gunicorns() -> None:
    config = configure()
    assert config.bind == ("127.0.0.1:8000",)
    assert (config.workers, config.threads, config.worker_class) == (1, 1, "sync")
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
    config = resolve([read_environment({"TRICORN_WORKERS": "3"}), file, read_arguments([])])
    assert (config.workers, config.origin("workers")) == (7, "gunicorn.conf.py")


def test_port_means_all_interfaces() -> None:
    assert configure(environ={"PORT": "5000"}).bind == ("0.0.0.0:5000",)


def test_a_bind_on_the_command_line_replaces_the_one_of_the_platform() -> None:
    assert configure("-b :1 -b :2", {"PORT": "5000"}).bind == (":1", ":2")


def test_an_empty_variable_is_ignored_and_said_so() -> None:
    layer = read_environment({"WEB_CONCURRENCY": ""})
    assert layer.values == {}
    assert layer.warnings == ("The environment variable WEB_CONCURRENCY is empty and was ignored.",)


def test_a_misspelt_variable_is_worth_a_warning() -> None:
    layer = read_environment({"TRICORN_WORKRS": "3"})
    assert layer.warnings == ("The environment variable TRICORN_WORKRS is not known; did you mean TRICORN_WORKERS?",)


def test_what_kubernetes_injects_is_not() -> None:
    environ = {"TRICORN_SERVICE_HOST": "10.0.0.1", "TRICORN_PORT_8000_TCP_ADDR": "10.0.0.1"}
    assert read_environment(environ).warnings == ()


def test_a_setting_of_gunicorns_that_is_not_there_is_refused() -> None:
    with pytest.raises(ConfigError, match="TRICORN_RELOAD: gunicorn's setting reload is not available"):
        read_environment({"TRICORN_RELOAD": "1"})


@pytest.mark.parametrize(
    ("argv", "environ", "words"),
    [
        ("-w 0", {}, "Invalid value for workers: 0 (from --workers): expected at least 1."),
        (
            "",
            {"WEB_CONCURRENCY": "x"},
            "Invalid value for workers: x (from WEB_CONCURRENCY): expected a whole number.",
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


def test_a_value_that_lost_is_not_looked_at() -> None:
    assert configure("-w 2", {"WEB_CONCURRENCY": "x"}).workers == 2
