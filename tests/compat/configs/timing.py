# How long did each request take?
import time

worker_class = "gthread"
threads = 4


def pre_request(worker, req):
    req.started = time.monotonic()
    worker.log.debug("%s %s", req.method, req.path)


def post_request(worker, req, environ, resp):
    took = time.monotonic() - req.started
    worker.log.info(
        "timing %s %s %s %.3f s %s bytes host=%s",
        req.method,
        req.path,
        resp.status_code,
        took,
        resp.sent,
        dict(req.headers).get("HOST"),
    )
