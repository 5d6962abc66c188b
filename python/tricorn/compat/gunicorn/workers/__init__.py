"""The worker classes, by gunicorn's names."""

from __future__ import annotations

from tricorn.compat.absent import refuse

SUPPORTED_WORKERS = {
    "sync": "gunicorn.workers.sync.SyncWorker",
    "gevent": "gunicorn.workers.ggevent.GeventWorker",
    "gevent_wsgi": "gunicorn.workers.ggevent.GeventPyWSGIWorker",
    "gevent_pywsgi": "gunicorn.workers.ggevent.GeventPyWSGIWorker",
    "tornado": "gunicorn.workers.gtornado.TornadoWorker",
    "gthread": "gunicorn.workers.gthread.ThreadWorker",
    "asgi": "gunicorn.workers.gasgi.ASGIWorker",
}

__getattr__ = refuse(__name__)
