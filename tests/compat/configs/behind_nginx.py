# Behind nginx on the same machine: a unix socket, its mode by the umask, a pidfile for the init script.
import os

base = os.environ["RUN_DIRECTORY"]
bind = f"unix:{base}/app.sock"
umask = 0o007
pidfile = os.path.join(base, "app.pid")
proc_name = "shop"
workers = 2
backlog = 64
limit_request_line = 8190
forwarded_allow_ips = "127.0.0.1"


def on_exit(server):
    server.log.info("bye from %s", server.pid)
