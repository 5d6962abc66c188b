"""The worker classes of greenlets: gevent's and eventlet's."""
