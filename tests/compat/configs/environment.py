# Twelve factors: everything from the environment, as in many images.
import os

for name, value in os.environ.items():
    if name.startswith("APP_GUNICORN_"):
        locals()[name[len("APP_GUNICORN_") :].lower()] = value

host = os.getenv("HOST", "127.0.0.1")
port = os.getenv("LISTEN_PORT", "8000")
bind = f"{host}:{port}"
web_concurrency = os.getenv("WORKERS_PER_CORE_TEST", "2")
workers = int(web_concurrency)
graceful_timeout = int(os.getenv("GRACEFUL_TIMEOUT", "5"))
timeout = int(os.getenv("TIMEOUT", "120"))
keepalive = int(os.getenv("KEEP_ALIVE", "5"))
accesslog = os.getenv("ACCESS_LOG", "-") or None
errorlog = os.getenv("ERROR_LOG", "-") or None
log_data = {"workers": workers, "bind": bind}
raw_env = [f"TRICORN_A={os.getenv('APP_NAME', 'none')}"]
