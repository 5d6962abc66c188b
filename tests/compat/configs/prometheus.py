# From the documentation of prometheus_client: a worker's files are marked when it is gone.
import os

from prometheus_client import multiprocess

workers = 2
worker_class = "sync"


def on_starting(server):
    os.makedirs(os.environ["PROMETHEUS_MULTIPROC_DIR"], exist_ok=True)


def child_exit(server, worker):
    multiprocess.mark_process_dead(worker.pid)
    server.log.info("metrics of worker %s are marked", worker.pid)
