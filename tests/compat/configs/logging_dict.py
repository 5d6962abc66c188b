# All logs through dictConfig, with formats and files of one's own.
import os

DIRECTORY = os.environ["LOG_DIRECTORY"]

workers = 1
accesslog = "-"
logconfig_dict = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "short": {"format": "%(levelname)s|%(process)d|%(name)s|%(message)s"},
        "access": {"format": "ACCESS %(message)s"},
    },
    "handlers": {
        "file": {
            "class": "logging.FileHandler",
            "filename": os.path.join(DIRECTORY, "error.log"),
            "formatter": "short",
        },
        "access_file": {
            "class": "logging.handlers.WatchedFileHandler",
            "filename": os.path.join(DIRECTORY, "access.log"),
            "formatter": "access",
        },
        "console": {"class": "logging.StreamHandler", "formatter": "short", "stream": "ext://sys.stderr"},
    },
    "root": {"level": "INFO", "handlers": ["console"]},
    "loggers": {
        "gunicorn.error": {"level": "INFO", "handlers": ["file", "console"], "propagate": False},
        "gunicorn.access": {"level": "INFO", "handlers": ["access_file"], "propagate": False},
    },
}
