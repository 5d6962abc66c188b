"""`tricorn load`: from words to a plan."""

from __future__ import annotations

from pathlib import Path

import pytest
from tricorn import __version__
from tricorn_bench.cli import load_flags
from tricorn_bench.load import Http2, LoadError, Plan, Stage, Target, Tls

URL = "http://127.0.0.1:8000/"


def plan(*words: str) -> Plan:
    return load_flags.parse([*words, URL]).plan


def test_the_defaults_are_heys() -> None:
    assert plan() == Plan(
        targets=(Target(URL),),
        headers=(("User-Agent", f"tricorn-load/{__version__}"), ("Accept-Encoding", "gzip")),
        requests=200,
        connections=50,
        follow_redirects=True,
    )


@pytest.mark.parametrize("dashes", ["-", "--"])
def test_flags_have_one_dash_or_two(dashes: str, tmp_path: Path) -> None:
    body = tmp_path / "body"
    body.write_bytes(b"\0\1")
    words = "n 7|c 3|q 2.5|m post|H A: b|H C:d|t 4|A x/y|T t/t|U me|a u:p|host h|cpus 2"
    words += "|disable-compression|disable-keepalive"
    given = [part for word in words.split("|") for part in f"{dashes}{word}".split(" ", 1)]
    made = plan(*given, f"{dashes}disable-redirects", f"{dashes}D", str(body))
    assert made == Plan(
        targets=(Target(URL),),
        method="POST",
        headers=(
            ("Host", "h"),
            ("A", "b"),
            ("C", "d"),
            ("Authorization", "Basic dTpw"),
            ("Accept", "x/y"),
            ("User-Agent", "me"),
            ("Content-Type", "t/t"),
        ),
        body=b"\0\1",
        requests=7,
        connections=3,
        pace=2.5,
        timeout=4.0,
        threads=2,
        keep_alive=False,
    )


def test_a_duration_makes_the_number_meaningless() -> None:
    made = plan("-z", "3s", "-n", "5")
    assert (made.seconds, made.requests) == (3.0, None)


def test_rates_ramps_and_users() -> None:
    made = plan("--rate", "100", "--poisson")
    assert (made.rate, made.poisson, made.seconds, made.connections, made.is_open) == (100.0, True, 10.0, 1000, True)
    made = plan("--rate", "100", "--ramp", "30s", "-z", "1m")
    assert (made.rate, made.ramp, made.seconds) == (0.0, (Stage(30, 100),), 60.0)
    made = plan("--ramp", "30s:50,1m:0", "-c", "9")
    assert (made.rate, made.ramp, made.seconds, made.connections) == (None, (Stage(30, 50), Stage(60, 0)), 90.0, 9)
    made = plan("--users", "20", "--hatch-rate", "2", "--think", "5s-15s")
    assert (made.connections, made.hatch_rate, made.think, made.seconds, made.is_open) == (
        20,
        2.0,
        (5, 15),
        10.0,
        False,
    )


def test_a_log_is_replayed(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text('- - - [21/Nov/2026:01:02:32 +0000] "GET /a HTTP/1.1" 200 12\nnothing\n')
    command = load_flags.parse(["--replay", str(log), URL])
    assert [request.path for request in command.plan.replay] == ["/a"]
    assert (command.plan.requests, command.plan.seconds) == (None, None)
    assert command.notes == ("1 requests within 0 s. 1 lines are no requests.",)


def test_several_urls_with_weights_and_a_socket() -> None:
    made = plan("--weights", "3,1", "http://127.0.0.1:8000/a")
    assert made.targets == (Target("http://127.0.0.1:8000/a", 3.0), Target(URL, 1.0))
    assert plan("--unix", "/run/s").targets == (Target("unix:/run/s:/"),)


def test_tls_and_whose_certificate_is_asked_for() -> None:
    secure = "https://127.0.0.1:8443/a"
    made = load_flags.parse(["-k", "--tls-min", "1.3", "--no-resume", "--no-post-quantum", secure]).plan
    assert made.tls == Tls(verify=False, minimum="1.3", resume=False, post_quantum=False)
    assert made.as_json()["tls"] == {
        "verify": False,
        "ca_file": None,
        "cert_file": None,
        "key_file": None,
        "min": "1.3",
        "max": "1.3",
        "resumes": False,
        "post_quantum": False,
        "suites": [],
    }
    assert made.as_json()["targets"][0]["server_name"] == "127.0.0.1"
    made = load_flags.parse(["-cacert", "ca.pem", "-cert", "c.pem", "-key", "k.pem", secure]).plan
    assert made.tls == Tls(ca_file="ca.pem", cert_file="c.pem", key_file="k.pem")
    made = load_flags.parse(["--ciphers", "TLS_AES_128_GCM_SHA256, TLS_CHACHA20_POLY1305_SHA256", secure]).plan
    assert made.as_json()["tls"]["suites"] == ["TLS_AES_128_GCM_SHA256", "TLS_CHACHA20_POLY1305_SHA256"]

    def name(*words: str) -> str | None:
        return load_flags.parse([*words]).plan.targets[0].server_name

    assert name("--host", "shop.example:8443", secure) == "shop.example"
    assert name("-H", "Host: shop.example", secure) == "shop.example"
    assert name("--unix", "/run/s", "https://shop.example/") == "shop.example"
    assert name("http://127.0.0.1:8000/") is None


@pytest.mark.parametrize("flag", ["--http2", "-http2", "-h2"])
def test_http2_has_streams(flag: str) -> None:
    assert plan().as_json()["http2"] is None
    made = plan(flag)
    assert (made.as_json()["http2"], made.connections) == ({"streams": 1}, 50)
    made = plan(flag, "--streams", "20")
    assert (made.http2, made.connections) == (Http2(20), 50)
    made = plan(flag, "--streams", "20", "--rate", "5")
    assert made.connections == 50, "1000 requests at a time"
    assert plan(flag, "--rate", "5").connections == 1000


def test_a_proxy_is_asked_for_whole_urls() -> None:
    made = plan("-x", "127.0.0.1:3128")
    (target,) = made.as_json()["targets"]
    assert target["address"] == {"tcp": ["127.0.0.1", 3128]}
    assert (target["host"], target["path"]) == ("127.0.0.1:8000", "http://127.0.0.1:8000/")
    assert not made.follow_redirects


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("-n 10 -c 20", "-n cannot be less than -c"),
        ("--rate 5 --users 3", "--rate and --users: each says when requests are sent"),
        ("--users 3 --ramp 3s:4", "--users and --ramp"),
        ("--users 3 -c 4", "--users and -c"),
        ("--ramp 3s", "--ramp: to which rate?"),
        ("--poisson", "--poisson is about"),
        ("--rate 3 --think 1s", "they go with --users"),
        ("--weights 1,2", "expected 1 numbers, one for each URL, got 2"),
        ("-a user", "expected USER:PASSWORD"),
        ("-D /no/such/file", "-D /no/such/file: No such file or directory."),
        ("--replay /no/such/file", "--replay /no/such/file: No such file or directory."),
        ("--streams 5", "--streams: only HTTP/2 has several requests on a connection"),
        ("--http2 -x 127.0.0.1:80", "--http2 and -x: a proxy is asked over HTTP/1.1"),
        ("--http2 --websocket", "--http2 and --websocket: WebSockets over HTTP/2 are not in this version"),
        ("--http2 --streams 5 --users 3", "--streams and --users: each user has a connection"),
        ("--http2 --streams 5 -disable-keepalive", "--streams and --disable-keepalive"),
        ("-x 127.0.0.1:80 --unix /run/s", "-x and --unix"),
        ("-x 127.0.0.1:80 --websocket", "-x and --websocket"),
        ("-x 127.0.0.1:port", "is not a URL that can be loaded"),
        ("-o xml", "-o xml: expected csv, the one format that there is"),
        ("-o csv --json", "-o csv and --json: one of them"),
        ("-o csv --websocket", "-o csv and --websocket: one of them"),
        ("-x 127.0.0.1:80 https://h/", "-x and https://: a tunnel through a proxy"),
        ("-k --cacert ca.pem https://h/", "-k and --cacert: certificates are either all taken, or checked"),
        ("-k", "There is no https:// or wss:// among the URLs"),
    ],
)
def test_what_does_not_fit_together_is_said(words: str, reason: str) -> None:
    with pytest.raises(LoadError, match=reason):
        plan(*words.split())


@pytest.mark.parametrize("words", ["-n 0", "-n x", "-z 3x", "-q 0", "-H nothing", "--think 3s-2s", "--unknown", "-c"])
def test_what_is_no_flag_ends_with_2(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        plan(*words.split())
    assert ended.value.code == 2
    assert "tricorn load: error: " in capsys.readouterr().err
