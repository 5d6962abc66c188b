# Health checks do not belong into the access log, and every line has the server's name.
import logging

from gunicorn import glogging


class HealthCheckFilter(logging.Filter):
    def filter(self, record):
        return "/hello" not in record.getMessage()


class CustomLogger(glogging.Logger):
    def setup(self, cfg):
        super().setup(cfg)
        self.access_log.addFilter(HealthCheckFilter())
        self._set_handler(
            self.error_log,
            cfg.errorlog,
            logging.Formatter(fmt="%(asctime)s custom-logger [%(process)d] [%(levelname)s] %(message)s"),
        )

    def atoms(self, resp, req, environ, request_time):
        atoms = super().atoms(resp, req, environ, request_time)
        atoms["custom"] = "custom-atom"
        return atoms


logger_class = CustomLogger
accesslog = "-"
access_log_format = '%(custom)s "%(r)s" %(s)s %(b)s'
