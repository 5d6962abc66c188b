# Lines that a log collector reads as JSON.
import json

accesslog = "-"
access_log_format = json.dumps(
    {
        "remote_ip": "%(h)s",
        "request_id": "%({x-request-id}i)s",
        "response_code": "%(s)s",
        "request_method": "%(m)s",
        "request_path": "%(U)s",
        "request_querystring": "%(q)s",
        "request_timetaken_us": "%(D)s",
        "response_length": "%(B)s",
        "pid": "%(p)s",
    }
)
forwarded_allow_ips = "*"
secure_scheme_headers = {"X-FORWARDED-PROTO": "https"}
