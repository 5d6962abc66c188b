# What the nginx buildpack waits for: a file that says the application takes requests.
import os


def when_ready(server):
    open(os.environ["APP_INITIALIZED"], "w").close()


def pre_fork(server, worker):
    open(os.environ["APP_INITIALIZED"] + ".fork", "w").close()


def nworkers_changed(server, new_value, old_value):
    server.log.info("workers: %s -> %s", old_value, new_value)


workers = int(os.environ.get("WEB_CONCURRENCY", 1))
worker_class = "sync"
reuse_port = True
