# Tracing that has a thread of its own starts it after the fork, and flushes it at the end.
import atexit
import queue
import threading

workers = 2
threads = 2


class Exporter:
    def __init__(self, log, resource):
        self.log, self.resource = log, resource
        self.spans = queue.Queue()
        self.thread = threading.Thread(target=self.run, daemon=True, name="exporter")
        self.thread.start()

    def run(self):
        while (span := self.spans.get()) is not None:
            self.log.info("span %s of %s", span, self.resource)

    def shutdown(self):
        self.spans.put(None)
        self.thread.join(2)
        self.log.info("exporter of %s is flushed", self.resource)


exporter = None


def post_fork(server, worker):
    global exporter
    exporter = Exporter(worker.log, f"worker-{worker.pid}")
    atexit.register(exporter.shutdown)


def post_worker_init(worker):
    application = worker.wsgi

    def traced(environ, start_response):
        exporter.spans.put(environ["PATH_INFO"])
        return application(environ, start_response)

    worker.wsgi = traced
