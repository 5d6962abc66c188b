# In a container: heartbeat files in memory, workers that are renewed now and then.
worker_tmp_dir = "/dev/shm"
workers = 2
worker_class = "gthread"
threads = 2
max_requests = 10
max_requests_jitter = 5
graceful_timeout = 10
timeout = 60


def worker_int(worker):
    worker.log.info("worker received INT or QUIT signal")
    import sys
    import threading
    import traceback

    names = {thread.ident: thread.name for thread in threading.enumerate()}
    for ident, stack in sys._current_frames().items():
        worker.log.debug("# Thread: %s\n%s", names.get(ident), "".join(traceback.format_stack(stack)))


def worker_abort(worker):
    worker.log.info("worker received SIGABRT signal")
