# A pool of database connections must not be shared over a fork: every worker has its own.
import sqlite3
import threading


class Pool:
    def __init__(self, path, size):
        self.lock = threading.Lock()
        self.connections = [sqlite3.connect(path, check_same_thread=False) for _ in range(size)]

    def close(self):
        with self.lock:
            for connection in self.connections:
                connection.close()


workers = 2
threads = 4
preload_app = True
pool = Pool(":memory:", 1)


def post_fork(server, worker):
    global pool
    # A lock that was held at the time of the fork would never be free again.
    pool.lock = threading.Lock()
    pool = Pool(":memory:", worker.cfg.threads)
    worker.pool = pool
    server.log.info("Worker spawned (pid: %s, connections: %s)", worker.pid, len(pool.connections))


def worker_exit(server, worker):
    worker.pool.close()
    server.log.info("Pool of worker %s is closed", worker.pid)


def pre_fork(server, worker):
    pass


def when_ready(server):
    server.log.info("Server is ready. Spawning workers")
