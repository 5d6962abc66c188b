"""Patching the standard library, late and in full. Each case in a process of its own: it is for ever.

The process is a fork of one that has imported what the arbiter of the class has, as workers are.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.interpreter import python
from tests.harness.needs import needs
from tests.harness.tls import TlsServer

BOTH = pytest.mark.parametrize("alias", ["gevent", "eventlet"])

PRELUDE = """
import os, sys
import tricorn.unpatched

alias = sys.argv[1]
sys.path.insert(0, os.getcwd())

class Log:
    lines = []
    def warning(self, message, *arguments):
        self.lines.append(message % arguments)

def patch(log=Log()):
    from tricorn_green import patching
    patching.patch(alias, log)
    return log.lines

def sibling():
    '''A greenlet that counts while others wait cooperatively.'''
    counted = []
    def count():
        import time
        while True:
            time.sleep(0.01)
            counted.append(1)
    if alias == "gevent":
        import gevent
        gevent.spawn(count)
    else:
        import eventlet
        eventlet.spawn(count)
    return counted
"""


def run(alias: str, code: str, tmp_path: Path, **files: str) -> str:
    """What `code` prints in an interpreter in whose directory the modules `files` are; nothing may reach stderr."""
    for name, text in files.items():
        (tmp_path / f"{name}.py").write_text(text)
    done = python(PRELUDE + code, alias, cwd=tmp_path, alias=alias)
    assert done.stderr == ""
    return done.stdout.strip()


@BOTH
class TestWhatWasImportedTooEarly:
    def test_names_defaults_and_closures_are_set_right(self, alias: str, tmp_path: Path) -> None:
        early = """
from functools import partial
from socket import create_connection, getaddrinfo, socket
from threading import Lock, local
from time import sleep

def by_default(pause=sleep, *, other=sleep):
    return pause, other

def made(pause):
    return lambda: pause

closure = made(sleep)
table = {"pause": sleep, "list": [sleep]}

class Client:
    pause = staticmethod(sleep)
    factory = socket

    def __init__(self):
        self.pause_of_its_own = sleep

class Slotted:
    __slots__ = ("pause",)

client, slotted = Client(), Slotted()
slotted.pause = sleep
"""
        code = """
import early
assert patch() == []
import socket, threading, time
assert early.sleep is time.sleep
assert early.by_default() == (time.sleep, time.sleep)
assert early.closure() is time.sleep
assert early.table == {"pause": time.sleep, "list": [time.sleep]}
assert early.Client.__dict__["factory"] is socket.socket is early.socket
assert early.client.pause_of_its_own is time.sleep is early.slotted.pause
assert early.getaddrinfo is socket.getaddrinfo
assert early.create_connection is socket.create_connection
assert early.local is threading.local
counted = sibling()
early.sleep(0.1)
print(len(counted) >= 2)
"""
        assert run(alias, code, tmp_path, early=early) == "True"

    def test_locks_that_exist_are_made_anew_and_stay_shared(self, alias: str, tmp_path: Path) -> None:
        early = """
import queue, threading
from concurrent.futures import ThreadPoolExecutor

lock = threading.Lock()
same = [lock]
recursive = threading.RLock()
condition = threading.Condition(lock)
event = threading.Event()
items = queue.Queue()
simple = queue.SimpleQueue()
own = threading.local()
own.value = 7
pool = ThreadPoolExecutor(2)
"""
        code = """
import early
assert patch() == []
import queue, threading, time
assert type(early.lock) is type(threading.Lock()), early.lock
assert early.same[0] is early.lock is early.condition._lock
assert type(early.recursive) is type(threading.RLock())
assert type(early.simple) is type(queue.SimpleQueue())
assert early.own.value == 7
counted = sibling()
def later():
    time.sleep(0.05)
    with early.condition:
        early.condition.notify()
    early.items.put("item")
    early.simple.put("simple")
    early.event.set()
threading.Thread(target=later).start()
with early.condition:
    assert early.condition.wait(5)
assert early.items.get(timeout=5) == "item"
assert early.simple.get(timeout=5) == "simple"
assert early.event.wait(5)
assert early.pool.submit(lambda: time.sleep(0.05) or threading.get_ident()).result(5) != threading.get_ident()
with early.lock:
    waiting = threading.Thread(target=early.lock.acquire)
    waiting.start()
    time.sleep(0.05)
waiting.join()
seen = []
threading.Thread(target=lambda: seen.append(hasattr(early.own, "value"))).start()
time.sleep(0.02)
assert seen == [False]
early.pool.shutdown()
print(len(counted) >= 2)
"""
        assert run(alias, code, tmp_path, early=early) == "True"

    def test_log_handlers_have_locks_for_greenlets(self, alias: str, tmp_path: Path) -> None:
        early = """
import logging.handlers
logging.getLogger("far.away").addHandler(logging.handlers.BufferingHandler(9))
"""
        code = """
import early
early.__dict__.clear()
sys.modules.pop("setproctitle", None)  # its logger leads to all others
assert patch() == []
import logging, threading
(handler,) = logging.getLogger("far.away").handlers
print(type(handler.lock) is type(threading.RLock()))
"""
        assert run(alias, code, tmp_path, early=early) == "True"

    def test_ssl_contexts_do_not_recurse(self, alias: str, tmp_path: Path) -> None:
        early = """
import ssl
from ssl import SSLContext, create_default_context

class Context(SSLContext):
    pass

existing, own, hidden = create_default_context(), Context(ssl.PROTOCOL_TLS_CLIENT), (create_default_context(),)
"""
        code = """
import early
assert patch() == []
import ssl
fresh = early.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
for context in (early.existing, early.own, early.hidden[0], fresh, early.create_default_context()):
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_COMPRESSION
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2
    assert context.verify_mode is ssl.CERT_NONE
assert isinstance(early.existing, ssl.SSLContext)
print("fine")
"""
        assert run(alias, code, tmp_path, early=early) == "fine"

    def test_objects_that_stand_for_others_are_not_asked(self, alias: str, tmp_path: Path) -> None:
        early = """
from time import sleep

class Lazy:
    __slots__ = ("__wrapped", "never")

    def __init__(self):
        self.__wrapped = [sleep]

    def fail(self, *_):
        raise RuntimeError("not now")

    __class__ = property(fail)
    __getattr__ = __setattr__ = __eq__ = __hash__ = __bool__ = __len__ = __iter__ = __repr__ = fail

    def wrapped(self):
        return object.__getattribute__(self, "_Lazy__wrapped")

Lazy.__setattr__ = object.__setattr__
lazy = Lazy()
Lazy.__setattr__ = Lazy.fail
many = {"lazy": [lazy, (lazy,)]}
"""
        code = """
import early
assert patch() == []
import time
print(early.Lazy.wrapped(early.lazy) == [time.sleep])
"""
        assert run(alias, code, tmp_path, early=early) == "True"

    def test_what_a_module_asks_for_as_the_original_stays_the_original(self, alias: str, tmp_path: Path) -> None:
        early = """
import sys
import threading
from threading import Lock
from time import sleep

from eventlet.patcher import original as of_eventlet
from gevent.monkey import get_original

import shared

state = get_original("threading", "local")()
real_sleep = get_original("time", "sleep")
own_lock = get_original("threading", "RLock")()
event = get_original("threading", "Event")()
plain = Lock()
table = {"get": get_original("_thread", "get_ident")}
shared.state = state

class Sampler:
    pause = staticmethod(real_sleep)

    def __init__(self):
        self.state = state
        self.pause = real_sleep

def wait(pause=real_sleep):
    return pause

def closed():
    return lambda: real_sleep

sampler, closure = Sampler(), closed()
"""
        code = """
import _thread, threading, time
sleep, local, rlock, get_ident = time.sleep, threading.local, type(threading.RLock()), threading.get_ident
import warnings
warnings.simplefilter("ignore")  # eventlet's of itself
import early, shared, of_eventlet
event_lock = early.event._cond._lock
assert patch() == []
assert type(early.state) is local, early.state
assert early.state is early.sampler.state is shared.state
assert early.real_sleep is early.wait() is early.closure() is early.sampler.pause is sleep
assert early.Sampler.__dict__["pause"].__func__ is sleep
assert type(early.own_lock) is rlock
assert early.table["get"] is get_ident
assert early.event._cond._lock is event_lock
assert "_thread" in type(of_eventlet.state).__module__ and of_eventlet.pause is of_eventlet.before[0]
assert of_eventlet.read is of_eventlet.before[1]
assert shared.sleep is time.sleep is not sleep, "it has not asked"
assert type(early.plain) is type(threading.Lock()), "it is not what was asked for"
print("fine")
"""
        shared = "from time import sleep\nstate = None\n"
        of_eventlet = """
from eventlet import patcher

real = patcher.original("threading")
state = real.local()
pause = patcher.original("time").sleep
read = patcher.original("os").read
before = (pause, read)
"""
        assert run(alias, code, tmp_path, early=early, shared=shared, of_eventlet=of_eventlet) == "fine"

    def test_https_lets_others_go_on(self, alias: str, tmp_path: Path) -> None:
        early = """
import socket, ssl, sys, threading, urllib.request
import requests, urllib3
from requests import get

URL, CERTIFICATE = sys.argv[2:]
context = ssl.create_default_context(cafile=CERTIFICATE)

class Own(ssl.SSLContext):
    pass

own = Own(ssl.PROTOCOL_TLS_CLIENT)
own.load_verify_locations(CERTIFICATE)
pool = urllib3.PoolManager(ca_certs=CERTIFICATE)
with requests.Session() as used:  # what chooses by what there is has chosen
    for _ in range(2):
        used.get(URL, verify=CERTIFICATE)
CLIENTS = {
    "urllib3": lambda url: pool.request("GET", url).data,
    "requests": lambda url: get(url, verify=CERTIFICATE).content,
    "urllib": lambda url: urllib.request.urlopen(url, context=context).read(),
    "context": lambda url: urllib.request.urlopen(url, context=own).read(),
}
"""
        code = """
import early
assert patch() == [], Log.lines
counted = sibling()
for name in (*early.CLIENTS, *early.CLIENTS):
    before = len(counted)
    assert early.CLIENTS[name](early.URL + "?0.2") == b"secure"
    assert len(counted) >= before + 2, name
print(True)
"""
        (tmp_path / "early.py").write_text(early)
        with TlsServer() as server:
            done = python(PRELUDE + code, alias, server.url, str(server.certificate), cwd=tmp_path, alias=alias)
        assert (done.stdout.strip(), done.stderr) == ("True", "")


@BOTH
class TestWhatIsLeft:
    def test_a_warning_names_the_module_what_it_keeps_and_who_imported_it(self, alias: str, tmp_path: Path) -> None:
        early = """
import socket, threading
from functools import partial
from time import sleep

class Connection(socket.socket):
    pass

class State(threading.local):
    pass

held = threading.Lock()
held.acquire()
soon = partial(sleep, 1)
listening = socket.create_server(("127.0.0.1", 0))
"""
        code = """
import between
for line in patch():
    print(line)
sys.modules["early"].listening.close()
"""
        (line,) = run(alias, code, tmp_path, early=early, between="\nimport early\n").splitlines()
        assert line.startswith(
            f"The module early was imported before it could be patched for {alias}, and still has "
        ), line
        for part in (
            "the class Connection (over the original socket.socket)",
            "the class State (over the original threading.local)",
            "held (a lock in use)",
            "soon (the original sleep)",
            "listening (a socket)",
        ):
            assert part in line

    def test_a_long_list_is_cut(self, alias: str, tmp_path: Path) -> None:
        early = "import socket\n" + "".join(f"class C{number}(socket.socket): pass\n" for number in range(9))
        (line,) = run(alias, "import early\nprint(*patch())", tmp_path, early=early).splitlines()
        assert line.count("the class C") == 5
        assert "4 more. These" in line

    def test_a_configuration_file_is_named_by_its_path(self, alias: str, tmp_path: Path) -> None:
        conf = "import socket\nclass Mine(socket.socket): pass\n"
        code = """
from tricorn.config import config_file
config_file.read(config_file.Location.parse("conf.py"), os.getcwd())
print(*patch())
"""
        assert run(alias, code, tmp_path, conf=conf).startswith(
            f"The configuration file conf.py was executed before it could be patched for {alias}, and still has the"
        )

    def test_the_server_itself_is_fine(self, alias: str, tmp_path: Path) -> None:
        code = """
import pkgutil, importlib, tricorn
for module in pkgutil.walk_packages(tricorn.__path__, "tricorn."):
    if module.name.startswith("tricorn.compat.gunicorn."):
        continue  # these are imported under another name, and by the user's code
    if module.name not in ("tricorn.__main__", "tricorn_green.workers.gevent", "tricorn_green.workers.eventlet"):
        importlib.import_module(module.name)
print(patch())
"""
        assert run(alias, code, tmp_path) == "[]"


@BOTH
class TestOnce:
    def test_a_second_call_does_nothing(self, alias: str, tmp_path: Path) -> None:
        code = """
patch()
import time
sleep = time.sleep
assert patch() == []
print(time.sleep is sleep)
"""
        assert run(alias, code, tmp_path) == "True"

    def test_a_process_is_patched_for_one_class(self, alias: str, tmp_path: Path) -> None:
        code = """
patch()
from tricorn.errors import ConfigError
from tricorn_green import patching
try:
    patching.patch({"gevent": "eventlet", "eventlet": "gevent"}[alias], Log())
except ConfigError as error:
    print(error)
"""
        assert "(preload_app). Restart the server." in run(alias, code, tmp_path)

    def test_who_has_patched_already_is_right(self, alias: str, tmp_path: Path) -> None:
        conf = """
import sys
if sys.argv[1] == "gevent":
    from gevent import monkey
    monkey.patch_all()
else:
    import warnings
    warnings.simplefilter("ignore")
    import eventlet
    eventlet.monkey_patch()
import requests
"""
        code = """
import conf, select
before = select.select
assert patch() == [], Log.lines
from tricorn.unpatched import select as native, os as native_os, time as native_time
assert hasattr(native, "epoll") and native.select is not before is select.select
import time
print(native_time.sleep is not time.sleep)
"""
        assert run(alias, code, tmp_path, conf=conf) == "True"

    def test_also_before_the_server_was_imported(self, alias: str, tmp_path: Path) -> None:
        conf = """
import warnings
warnings.simplefilter("ignore")
import sys
if sys.argv[1] == "gevent":
    from gevent import monkey
    monkey.patch_all()
else:
    import eventlet
    eventlet.monkey_patch()
"""
        code = """
from tricorn.unpatched import os, select, socket, time
import _socket, time as patched
assert select.epoll and select.poll
assert type(time.sleep) is type(len) and time.sleep is not patched.sleep
ends = socket.socketpair()
assert isinstance(ends[0], _socket.socket)
print(type(os.fork) is type(os.waitpid) is type(os.read) is type(len))
"""
        (tmp_path / "conf.py").write_text(conf)
        assert python("import conf\n" + code, alias, cwd=tmp_path).stdout.strip() == "True"


@BOTH
class TestAfterAFork:
    def test_a_hub_that_the_parent_has_used_is_the_childs_own(self, alias: str, tmp_path: Path) -> None:
        code = """
patch()
import subprocess, threading, time
from tricorn.unpatched import os as native
subprocess.check_output(["true"])
inherited = sibling()
time.sleep(0.1)
pid = native.fork()
if pid == 0:
    patch()
    before = len(inherited)
    counted = sibling()
    time.sleep(0.1)
    assert subprocess.check_output(["echo", "child"]) == b"child\\n"
    import socket
    socket.getaddrinfo("localhost", 80)
    assert len(counted) >= 2
    assert len(inherited) >= before + 2
    sys.stdout.flush()
    os._exit(17)
_, status = native.waitpid(pid, 0)
counted = sibling()
time.sleep(0.1)
assert len(counted) >= 2
print(os.waitstatus_to_exitcode(status))
"""
        assert run(alias, code, tmp_path) == "17"

    def test_what_the_parent_has_found_is_set_right_in_the_child_and_what_came_later(
        self, alias: str, tmp_path: Path
    ) -> None:
        early = """
import threading
from time import sleep

lock, gone, replaced, table = threading.Lock(), threading.Lock(), threading.Lock(), {"sleep": sleep}
"""
        code = """
import gc, threading, time
import early
from tricorn_green import patching
from tricorn.unpatched import os as native
patching.survey()
gc.freeze()
sleep = time.sleep
del early.gone
early.replaced = own = object()
early.table.clear()
import late
for child in range(2):
    pid = native.fork()
    if pid == 0:
        assert patch() == []
        assert early.sleep is late.sleep is late.Late.pause is time.sleep is not sleep
        assert type(early.lock) is type(late.lock) is type(late.items[0]) is type(threading.Lock())
        assert not hasattr(early, "gone") and early.replaced is own and early.table == {}
        os._exit(17)
    assert os.waitstatus_to_exitcode(native.waitpid(pid, 0)[1]) == 17
print(time.sleep is early.sleep is sleep)
"""
        late = """
import threading
from time import sleep

class Late:
    pause = sleep

lock, items = threading.Lock(), [threading.Lock()]
"""
        assert run(alias, code, tmp_path, early=early, late=late) == "True"

    def test_the_arbiter_hears_of_its_children_whatever_a_hook_does(self, alias: str, tmp_path: Path) -> None:
        code = """
patch()
import subprocess
from tricorn_green import patching
from tricorn.unpatched import os as native, signal
heard = []
signal.signal(signal.SIGCHLD, lambda *_: heard.append(1))
for _ in range(2):
    subprocess.check_output(["true"])
    patching.take_signals_back()
heard.clear()
pid = native.fork()
if pid == 0:
    native._exit(0)
from tricorn.unpatched import time
deadline = time.monotonic() + 10
while not heard and time.monotonic() < deadline:
    time.sleep(0.01)
print(bool(heard), native.waitpid(pid, 0)[0] == pid)
"""
        assert run(alias, code, tmp_path) == "True True"


@BOTH
class TestTheServersOwn:
    def test_its_log_has_real_locks_and_unfinished_lines_are_a_greenlets(self, alias: str, tmp_path: Path) -> None:
        code = """
import logging
from tricorn.log import raw_text, targets
from tricorn.unpatched import _thread
handler = targets.Quiet()
logging.getLogger("gunicorn.error").addHandler(handler)
patch()
assert type(handler.lock) is type(logging._lock) is _thread.RLock
assert type(targets.Quiet().lock) is _thread.RLock
raw_text._unfinished.complete("mine")
import threading
seen = []
other = threading.Thread(target=lambda: seen.append(raw_text._unfinished.take()))
other.start()
other.join()
print(seen)
"""
        assert run(alias, code, tmp_path) == "['']"

    @pytest.mark.parametrize("engine", ["poll", "inotify"])
    def test_its_threads_are_real(self, alias: str, engine: str, tmp_path: Path) -> None:
        if engine == "inotify":
            needs("watchfiles")
        code = f"""
patch()
import time
import watched
from tricorn.workers import reloader
changed = []
watch = reloader.start([], {engine!r}, changed.append)
counted = sibling()
time.sleep(0.05)
open("watched.py", "a").write("# changed")
deadline = time.monotonic() + 10
while not changed and time.monotonic() < deadline:
    before = len(counted)
    time.sleep(0.05)
    assert len(counted) > before
watch.stop()
print(*map(os.path.basename, changed))
"""
        assert run(alias, code, tmp_path, watched="") == "watched.py"
