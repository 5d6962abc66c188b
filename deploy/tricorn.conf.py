# A host behind a load balancer on other machines: the recipes of this directory are for it.
bind = "0.0.0.0:8000"
admin_bind = "0.0.0.0:8001"
workers = "auto"
# Longer than the balancer keeps an idle connection.
keepalive = 75
# Longer than the balancer takes to notice: the time between two checks, times the failures that it waits for.
drain_delay = 5
graceful_timeout = 30
# Where the balancers are.
forwarded_allow_ips = "10.0.0.0/8"
trusted_proxy_headers = "x-forwarded-for,x-forwarded-proto,x-forwarded-host"
