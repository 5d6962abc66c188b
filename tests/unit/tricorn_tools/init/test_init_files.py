"""The files of `tricorn init`: values that follow from settings, and what the checkers of each format say."""

from __future__ import annotations

import io
import json
import os
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml
from dockerfile_parse import DockerfileParser
from tricorn.cli import main


@pytest.fixture(autouse=True)
def _here(nothing_configured: Path) -> None:
    """In a directory without a configuration."""


def text_of(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["init", *words]) == 0
    return capsys.readouterr().out


ANYWHERE = ("-b", "0.0.0.0:80", "--admin-bind", "0.0.0.0:8001")
FOLLOWS: dict[str, list[tuple[tuple[str, ...], str]]] = {
    "systemd": [
        ((), "TimeoutStopSec=35\n"),
        (("--graceful-timeout", "90", "--drain-delay", "10"), "TimeoutStopSec=105\n"),
        (("--boot-timeout", "20"), "TimeoutStartSec=30\n"),
        (("--boot-timeout", "0"), "TimeoutStartSec=infinity\n"),
        (("--boot-timeout", "20", "--canary", "1", "--canary-time", "90"), "TimeoutStartSec=140\n"),
        (("-b", ":80"), "AmbientCapabilities=CAP_NET_BIND_SERVICE\nCapabilityBoundingSet=CAP_NET_BIND_SERVICE\n"),
        (("-b", ":80", "--socket"), "\nCapabilityBoundingSet=\n"),
        (("-b", "unix:/run/front/s"), "RuntimeDirectory=front\n"),
        (("-b", "unix:/srv/front/s"), "RuntimeDirectory=tricorn-shop\n"),
        (("-b", "unix:/srv/front/s"), "ReadWritePaths=/srv/front\n"),
        (("-n", "My Shop", "--socket"), "Requires=my-shop.socket\n"),
        (("--socket", "-b", "[::1]:80", "-b", "unix:@name"), "ListenStream=[::1]:80\nListenStream=@name\n"),
        (("-w", "2", "--max-worker-memory", "100M"), "MemoryMax=464M\n"),
        (("-w", "auto", "--max-worker-memory", "100M"), "# With a number of workers and max_worker_memory set"),
        (("-u", "10", "-g", "11"), "User=10\nGroup=11\n"),
        (("--access-logformat", '%(h)s "$x"'), '"%%(h)s \\"$$x\\""'),
        (("--systemd-version", "252"), "Type=notify\n"),
        (("--systemd-version", "252"), "ExecReload=/bin/kill -HUP $MAINPID\n"),
        (("--systemd-version", "253"), "Type=notify-reload\nNotifyAccess=main\n"),
    ],
    "docker": [
        ((), "STOPSIGNAL SIGTERM\n"),
        (("--graceful-timeout", "90"), "--stop-timeout 95\n"),
        (("--boot-timeout", "20"), "--start-period=20s"),
        (("-k", "gevent"), "'tricorn[gevent]=="),
        (("-b", ":81", "-b", ":82"), "EXPOSE 81 82\n"),
        (("-u", "33", "-g", "34"), "USER 33:34\n"),
        (("--control-socket", "/tmp/c"), '["tricorn", "ctl", "-s", "/tmp/c", "health"]'),
        (("--no-control-socket", "--health-path", "/up"), "http://127.0.0.1:8001/up"),
    ],
    "compose": [
        (("--graceful-timeout", "90"), "stop_grace_period: 95s\n"),
        (("-w", "2", "--max-worker-memory", "100M"), "mem_limit: 464m\n"),
        (("-b", ":81"), 'ports: ["81:81"]\n'),
        (("--access-logformat", "$x"), '"$$x"'),
    ],
    "kubernetes": [
        (("--graceful-timeout", "90", "--drain-delay", "7"), "terminationGracePeriodSeconds: 102\n"),
        (("--boot-timeout", "21"), "failureThreshold: 5}"),
        (("--ready-path", "/r"), 'readinessProbe: {httpGet: {path: "/r", port: admin}'),
        (("--metrics-path", "/m"), 'prometheus.io/path: "/m"\n'),
        (("-w", "2", "--max-worker-memory", "100M"), "limits: {memory: 464Mi}"),
        (("-w", "auto"), "# workers = auto (--workers): as many as limits.cpu and limits.memory allow, rounded up."),
        (("-w", "auto"), "emptyDir: {}"),
        (("--body-disk-total", "0"), "emptyDir: {}"),
        (("-w", "2",), "sizeLimit: 6208Mi"),
        (("--image", "registry/shop:1", "--replicas", "4"), 'image: "registry/shop:1"\n'),
        (("-b", "0.0.0.0:80"), "net.ipv4.ip_unprivileged_port_start"),
    ],
    "nginx": [
        (("--keep-alive", "75"), "keepalive_timeout 74s;\n"),
        (("--keep-alive", "1"), '    "" close;\n'),
        (("--limit-request-body", "1M"), "client_max_body_size 1048576;\n"),
        (("--limit-request-line", "0"), 'Upgrade $http_upgrade;\n'),
        ((), "large_client_header_buffers 4 9k;\n"),
        (("--request-timeout", "100", "--queue-timeout", "3"), "proxy_read_timeout 108s;\n"),
        (("--timeout", "0"), "proxy_read_timeout 3600s;\n"),
        (("-b", "unix:/run/shop/s"), "server unix:/run/shop/s max_fails=0;\n"),
        (("-b", "0.0.0.0:9000"), "server 127.0.0.1:9000 max_fails=0;\n"),
        (("-b", "https://:443", "-b", "http://:9000", "--certfile", __file__), "server 127.0.0.1:9000 max_fails=0;\n"),
        ((*ANYWHERE, "--hosts", "app-1,app-2"), "least_conn;\n"),
        ((*ANYWHERE, "--hosts", "app-1,app-2"), "server app-2:80 fail_timeout=2s;\n"),
        ((*ANYWHERE, "--hosts", "app-1"), "server app-1:80 max_fails=0;\n"),
        (("--protocol", "uwsgi", "-b", ":3031"), "uwsgi_pass shop;\n"),
        (("-b", "uwsgi+unix:/run/shop/s"), "include uwsgi_params;\n"),
        (("-b", "scgi://:4000", "--request-timeout", "100", "--queue-timeout", "3"), "scgi_read_timeout 108s;\n"),
        (("-b", "fastcgi+unix:/run/shop/s", "--keep-alive", "75"), "fastcgi_keep_conn on;\n"),
        (("-b", "uwsgi://:3031", "-b", "http://:8000"), "proxy_pass http://shop;\n"),
        (("-b", "uwsgi://0.0.0.0:80", "--hosts", "app-1,app-2"), "server app-2:80 fail_timeout=2s;\n"),
        (("--public", "8080", "--domain", "shop.example"), "listen [::]:8080;\n    server_name shop.example;\n"),
    ],
    "apache": [
        (("-b", "127.0.0.1:9000"), '    ProxyPass "/" "http://127.0.0.1:9000/" retry=0 '),
        (("-b", "[::1]:9000"), '    ProxyPass "/" "http://[::1]:9000/" retry=0 '),
        (("-b", "unix:/run/shop/s"), '    ProxyPass "/" "unix:/run/shop/s|http://shop/" retry=0 '),
        (("-b", "unix:s", "--chdir", "/tmp"), '"unix:/tmp/s|http://shop/"'),
        (("--keep-alive", "75"), " ttl=74 "),
        (("--keep-alive", "1"), " disablereuse=on "),
        (("--request-timeout", "100", "--queue-timeout", "3"), " timeout=108 flushpackets=on upgrade=websocket"),
        (("--limit-request-body", "1M"), "    LimitRequestBody 1048576\n"),
        (("--limit-request-line", "8191", "--limit-request-fields", "101"), " 8191\n    LimitRequestFields 101\n"),
        (("--header-timeout", "7", "--body-timeout", "9"), "RequestReadTimeout header=7 body=9,MinRate=240\n"),
        (("--body-min-rate", "0"), "RequestReadTimeout header=20 body=20\n"),
        (("--public", "8080"), "\nListen *:8080\n<VirtualHost *:8080>\n"),
        (("--domain", "shop.example a.example"), "    ServerName shop.example\n    ServerAlias a.example\n"),
        (("--public", "127.0.0.1:443"), "\n\n<VirtualHost 127.0.0.1:443>\n"),
        ((), ": a2dissite 000-default.\n"),
        ((), "#   a2enmod proxy_http headers\n"),
        ((*ANYWHERE, "--hosts", "app-1,app-2"), "a2enmod proxy_http headers proxy_balancer lbmethod_bybusyness\n"),
        ((*ANYWHERE, "--hosts", "app-1,app-2"), 'BalancerMember "http://app-2:80" retry=2 connectiontimeout=2 ttl=1 '),
        ((*ANYWHERE, "--hosts", "app-1,app-2"), 'ProxyPass "/" "balancer://shop/" nocanon\n'),
        ((*ANYWHERE, "--hosts", "app-1"), 'ProxyPass "/" "http://app-1:80/" retry=0 '),
        (("--protocol", "uwsgi", "-b", ":3031"), ' "uwsgi://127.0.0.1:3031/" retry=0 timeout=95 flushpackets=on\n'),
        (("-b", "scgi+unix:/run/shop/s"), 'ProxyPass "/" "unix:/run/shop/s|scgi://shop/" retry=0 timeout=95 '),
        (("-b", "fastcgi://:9000", "--keep-alive", "75"), '"fcgi://127.0.0.1:9000/" retry=0 ttl=74 enablereuse=on '),
        (("-b", "fastcgi://:9000", "--keep-alive", "0"), '"fcgi://127.0.0.1:9000/" retry=0 disablereuse=on '),
        (("-b", "uwsgi://:3031", "-b", "http://:8000"), "a2enmod proxy_http headers\n"),
        (("-b", "uwsgi://0.0.0.0:80", "--hosts", "app-1,app-2"), 'BalancerMember "uwsgi://app-2:80" retry=2 '),
    ],
    "haproxy": [
        (("--header-timeout", "7"), "timeout http-request 7s\n"),
        (("--admin-bind", "127.0.0.1:8001", "--ready-path", "/r"), "meth GET uri /r ver HTTP/1.1"),
        (("--admin-bind", "127.0.0.1:8001"), "rise 1 port 8001"),
        (("--admin-bind", "127.0.0.1:8001", "-b", "unix:/run/s/s"), "unix@/run/s/s check inter 1s fall 2 rise 1 addr"),
        (("--public", "127.0.0.1:8080"), "bind 127.0.0.1:8080\n"),
        ((*ANYWHERE, "--hosts", "10.0.0.1, app-2"), "server shop-2 app-2:80 check inter 1s fall 2 rise 1 port 8001"),
        ((*ANYWHERE, "--hosts", "10.0.0.1,app-2"), "balance leastconn\n"),
        ((*ANYWHERE, "--hosts", "10.0.0.1,b"), ' agent-check agent-port 8001 agent-inter 2s agent-send "weight\\n"'),
        ((*ANYWHERE, "--hosts", "app-1"), "rise 1 port 8001 pool-purge-delay"),
        (("-b", "0.0.0.0:80", "--hosts", "app-1,app-2"), "# For one queue of all hosts: `maxconn N` on each line"),
        (("-b", "0.0.0.0:80", "--hosts", "app-1,app-2"), "rise 1 pool-purge-delay"),
    ],
    "envoy": [
        (("--header-timeout", "7"), "request_headers_timeout: 7s\n"),
        (("--admin-bind", "127.0.0.1:8001", "--ready-path", "/r"), 'http_health_check: {path: "/r", host: tricorn}'),
        (("--admin-bind", "127.0.0.1:8001"), 'health_check_config: {address: {socket_address: {address: "127.0.0.1"'),
        (("-b", "unix:/run/s/s"), 'endpoint: {address: {pipe: {path: "/run/s/s"}}}\n'),
        (("--public", "127.0.0.1:8080"), 'address: {socket_address: {address: "127.0.0.1", port_value: 8080}}\n'),
        (("--request-timeout", "100", "--queue-timeout", "3"), "timeout: 108s\n"),
        (("--keep-alive", "9"), "idle_timeout: 8s}\n"),
        ((*ANYWHERE, "--hosts", "10.0.0.1,10.0.0.2"), "type: STATIC\n"),
        ((*ANYWHERE, "--hosts", "10.0.0.1,app-2"), "type: STRICT_DNS\n"),
        ((*ANYWHERE, "--hosts", "10.0.0.1,app-2"), "health_check_config: {port_value: 8001}"),
    ],
}  # fmt: skip


def test_each_value_follows_from_its_setting(capsys: pytest.CaptureFixture[str]) -> None:
    missing = []
    for kind, rows in FOLLOWS.items():
        for words, expected in rows:
            if expected not in (found := text_of(capsys, kind, *words, "shop:app")):
                missing.append(f"{kind} {words}: {expected!r} is not in\n{found}")
    assert not missing, "\n".join(missing)


@pytest.mark.parametrize("kind", ["nginx", "apache", "haproxy", "envoy"])
def test_a_socket_that_the_proxy_cannot_write_to_is_noted(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    def noted(*words: str) -> bool:
        assert main(["init", kind, "shop:app", "-b", "unix:/run/shop/s", *words]) == 0
        return "must be able to write to the socket, or answers 502 or 503" in capsys.readouterr().err

    assert noted("-m", "007")
    assert noted("-m", "077")
    assert not noted("-m", "007", "-g", str(os.getgid()))
    assert not noted()


def test_a_proxy_needs_an_address_in_the_clear(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "nginx", "shop:app", "-b", ":443", "--certfile", __file__]) == 1
    assert "every address uses TLS: bind = :443 (--bind). Add one with http://" in capsys.readouterr().err


def test_what_front_ends_may_not_do_is_noted(capsys: pytest.CaptureFixture[str]) -> None:
    def noted(*words: str) -> str:
        assert main(["init", "nginx", "shop:app", *words]) == 0
        return capsys.readouterr().err

    assert "WebSockets do not pass by this protocol" in noted("-b", "uwsgi://:3031")
    assert "nginx may not ask: uwsgi_allow_ips" in noted("-b", "scgi://10.0.0.1:4000", "--uwsgi-allow-from", "10.0.0.2")
    assert "10.0.0.2" not in noted("-b", "scgi://10.0.0.1:4000", "--uwsgi-allow-from", "10.0.0.0/24")
    assert main(["init", "haproxy", "shop:app", "-b", "uwsgi://:3031"]) == 1
    assert "every address speaks something else: bind = uwsgi://:3031" in capsys.readouterr().err


def test_a_service_is_called_by_its_module_or_its_directory(
    nothing_configured: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (nothing_configured / "The_Shop").mkdir()
    monkeypatch.chdir(nothing_configured / "The_Shop")
    for app, name in (("store.wsgi:application", "store"), ("main:app", "the-shop"), ("wsgi", "the-shop")):
        assert text_of(capsys, "systemd", app).startswith(f"# {name}.service:"), app


def test_homes_are_seen_only_where_they_are_needed(capsys: pytest.CaptureFixture[str]) -> None:
    from tricorn.config.resolve import resolve
    from tricorn_tools.init import service, systemd

    def unit(directory: str) -> str:
        made = service.Service(resolve([]), ("a:b",), (), directory, "/usr/bin/python3", "3.13")
        return systemd.render(made, systemd.Choices(root=True)).files[0].text

    assert "ProtectHome=yes\n" in unit("/srv/shop")
    assert "ProtectHome=read-only\n" in unit("/hom" + "e/me/shop")


def test_compose_has_the_schema_of_compose(capsys: pytest.CaptureFixture[str]) -> None:
    vendored = resources.files("check_jsonschema") / "builtin_schemas" / "vendor" / "compose-spec.json"
    schema = json.loads(vendored.read_text())
    for words in ((), ANYWHERE, ("-w", "2", "--max-worker-memory", "100M", "--no-control-socket")):
        found = yaml.safe_load(text_of(capsys, "compose", *words, "shop:app"))
        jsonschema.validate(found, schema)
        (service,) = found["services"].values()
        assert service["command"][0] == "tricorn"
    found["services"]["shop"]["stop_grace"] = 1
    with pytest.raises(jsonschema.ValidationError):  # the checker sees what is no key
        jsonschema.validate(found, schema)


def test_kubernetes_has_the_schemas_of_kubernetes(capsys: pytest.CaptureFixture[str]) -> None:
    for words in ((), ANYWHERE, ("-w", "2", "--max-worker-memory", "100M", "--body-disk-total", "0")):
        documents = list(yaml.safe_load_all(text_of(capsys, "kubernetes", *words, "shop:app")))
        assert [document["kind"] for document in documents] == ["Deployment", "Service", "PodDisruptionBudget"]
        for document in documents:
            kubernetes_validate.validate(document, "1.34", strict=True)
    pod = documents[0]["spec"]["template"]["spec"]
    pod["graceSeconds"] = 1
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(documents[0], "1.34", strict=True)


def test_a_pod_monitor_stands_in_place_of_annotations(capsys: pytest.CaptureFixture[str]) -> None:
    documents = list(yaml.safe_load_all(text_of(capsys, "kubernetes", "--pod-monitor", "shop:app")))
    monitor = documents[-1]
    assert monitor["kind"] == "PodMonitor"
    assert monitor["spec"]["podMetricsEndpoints"] == [{"port": "admin", "path": "/metrics"}]
    assert "annotations" not in documents[0]["spec"]["template"]["metadata"]


def stages(text: str) -> tuple[list[dict[str, Any]], str]:
    """The Dockerfile's instructions as its parser has them, and the .dockerignore."""
    dockerfile, _, ignore = text.partition("\n# ---- .dockerignore\n")
    parser = DockerfileParser(fileobj=io.BytesIO(dockerfile.encode()))
    return parser.structure, ignore


INSTRUCTIONS = {
    "COMMENT",
    "FROM",
    "RUN",
    "ENV",
    "COPY",
    "WORKDIR",
    "USER",
    "EXPOSE",
    "STOPSIGNAL",
    "HEALTHCHECK",
    "CMD",
}


def test_a_dockerfile_is_what_its_parser_reads(nothing_configured: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, content in (("", ""), ("pyproject.toml", "[project]\n"), ("requirements.txt", "flask\n")):
        if name:
            (nothing_configured / name).write_text(content)
        found, ignore = stages(text_of(capsys, "docker", *ANYWHERE, "shop:app"))
        names = [instruction["instruction"] for instruction in found]
        assert set(names) <= INSTRUCTIONS
        assert names.count("FROM") == 2
        last = {instruction["instruction"]: instruction["value"] for instruction in found}
        assert json.loads(last["CMD"]) == ["tricorn", *ANYWHERE, "shop:app"], "exec form"
        assert json.loads(last["HEALTHCHECK"].partition(" CMD ")[2]) == ["tricorn", "ctl", "health"]
        installs = [row["value"] for row in found if "pip install" in row["value"]]
        assert (name if name != "pyproject.toml" else "pip install .") in installs[0]
        assert ".git\n" in ignore


def test_apache_takes_no_path_that_its_urls_cannot_have(capsys: pytest.CaptureFixture[str]) -> None:
    for character in "|?#":
        assert main(["init", "apache", "shop:app", "-b", f"unix:/run/a{character}b"]) == 1
        assert f"a unix socket with {character} in its path: bind = unix:/run/a" in capsys.readouterr().err
    assert main(["init", "apache", "shop:app", "--domain", "${x}"]) == 1
    assert "Apache would replace ${…} in its configuration: '${x}'" in capsys.readouterr().err
    assert main(["init", "apache", "shop:app", "--public", "/run/s"]) == 1
    assert "Invalid value for --public: /run/s: expected PORT or HOST:PORT." in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["nginx", "apache", "haproxy"])
def test_a_line_end_in_a_value_is_refused_or_stays_in_its_comment(
    kind: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for words in (("-b", "unix:/run/a\nb"), ("--public", "a\n    evil:80")):
        assert main(["init", kind, *words]) == 1
        assert "Control characters" in capsys.readouterr().err
    text = text_of(capsys, kind, "--forwarded-allow-ips", "10.0.0.1,\n10.0.0.2")
    assert "\n10.0.0.2" not in text


@pytest.mark.parametrize(
    ("kind", "words", "line"),
    [
        ("nginx", ("--domain", "a.example b;} c.example"), 'server_name a.example "b;}" c.example;'),
        ("nginx", ("-b", 'unix:/run/my "shop";'), r'server "unix:/run/my \"shop\";" max_fails=0;'),
        ("nginx", ("--public", "80;}"), 'listen "80;}";'),
        ("apache", ("--domain", 'a"b c'), r'ServerName "a\"b"'),
        (
            "apache",
            ("-b", 'unix:/run/my "shop" \\'),
            r'ProxyPass "/" "unix:/run/my \"shop\" \\|http://tricorn/" retry=0',
        ),
        ("haproxy", ("-b", "unix:/run/my 'shop' #1"), r"server tricorn-1 unix@/run/my\ \'shop\'\ \#1 check"),
        ("haproxy", ("--public", "/run/my shop"), r"bind /run/my\ shop"),
    ],
)
def test_a_value_stays_one_word(kind: str, words: tuple[str, ...], line: str, capsys: Any) -> None:
    assert f"    {line}" in text_of(capsys, kind, "-n", "tricorn", *words)
