"""A whole envoy.yaml: health by the readiness path, retries of what was not sent, WebSockets, forwarded headers."""

from __future__ import annotations

import json

from tricorn.config.addresses import TcpAddress, UnixAddress
from tricorn.errors import ConfigError
from tricorn_tools.init import front_end
from tricorn_tools.init.front_end import Choices
from tricorn_tools.init.service import File, Rendered, Service, is_loopback, lines

EVERY, FALL = 1, 2
"""Seconds between two checks, and how many that fail take a host out."""

DRAWS, RETRIES = 10, 1000

TYPES = "type.googleapis.com/envoy.extensions"
MANAGER = f"{TYPES}.filters.network.http_connection_manager.v3.HttpConnectionManager"
ROUTER = f"{TYPES}.filters.http.router.v3.Router"
PREVIOUS = f"{TYPES}.retry.host.previous_hosts.v3.PreviousHostsPredicate"
UPSTREAM = f"{TYPES}.upstreams.http.v3.HttpProtocolOptions"


def render(service: Service, choices: Choices) -> Rendered:
    text = lines(
        "# envoy.yaml: written by `tricorn init envoy`.",
        "static_resources:",
        "  listeners:",
        *_listener(service, choices),
        "  clusters:",
        *_cluster(service, choices),
    )
    return Rendered((File("envoy.yaml", text),), tuple(_notes(service, choices)))


def _listener(service: Service, choices: Choices) -> list[str]:
    config = service.config
    timeout = front_end.read_timeout(service)
    return [
        f"  - name: {service.name}",
        f"    address: {_socket(_public(choices.listen))}",
        "    filter_chains:",
        "    - filters:",
        "      - name: envoy.filters.network.http_connection_manager",
        "        typed_config:",
        f'          "@type": {MANAGER}',
        f"          stat_prefix: {service.name}",
        f"          # {front_end.trust(service)}",
        "          # X-Forwarded-For and -Proto are Envoy's own, whatever a client says.",
        "          use_remote_address: true",
        f"          # {service.says('header_timeout')}.",
        f"          request_headers_timeout: {config.header_timeout:g}s",
        "          upgrade_configs: [{upgrade_type: websocket}]",
        "          http_filters:",
        "          - name: envoy.filters.http.router",
        f'            typed_config: {{"@type": {ROUTER}}}',
        "          route_config:",
        "            virtual_hosts:",
        f"            - name: {service.name}",
        '              domains: ["*"]',
        "              request_headers_to_add:",
        '              - header: {key: X-Forwarded-Host, value: "%REQ(:authority)%"}',
        "                append_action: OVERWRITE_IF_EXISTS_OR_ADD",
        f"              # {service.says('queue_timeout')}: what a request waited here counts.",
        '              - header: {key: X-Request-Start, value: "t=%START_TIME(%s.%3f)%"}',
        "                append_action: OVERWRITE_IF_EXISTS_OR_ADD",
        "              # What a client says in Envoy's place is not passed on.",
        f"              request_headers_to_remove: {json.dumps([*front_end.spoofable(service)])}",
        "              routes:",
        '              - match: {prefix: "/"}',
        "                route:",
        f"                  cluster: {service.name}",
        f"                  # {front_end.why_read_timeout(service)}",
        f"                  timeout: {timeout}s",
        "                  # Of a WebSocket, or of a stream: when nothing is sent.",
        f"                  idle_timeout: {max(timeout, front_end.HOUR)}s",
        *_retries(),
    ]


def _retries() -> list[str]:
    return [
        "                  # What was not sent goes to another host, whatever its method.",
        "                  retry_policy:",
        "                    retry_on: connect-failure,refused-stream,reset-before-request",
        "                    num_retries: 3",
        "                    retry_host_predicate:",
        "                    - name: envoy.retry_host_predicates.previous_hosts",
        f'                      typed_config: {{"@type": {PREVIOUS}}}',
        "                    # A host that refuses has the fewest requests, and is drawn more often than others.",
        f"                    host_selection_retry_max_attempts: {DRAWS}",
    ]


def _cluster(service: Service, choices: Choices) -> list[str]:
    found = front_end.upstreams(service, choices)
    names = any(isinstance(each, TcpAddress) and not _is_address(each.host) for each in found)
    return [
        f"  - name: {service.name}",
        f"    type: {'STRICT_DNS' if names else 'STATIC'}",
        "    lb_policy: LEAST_REQUEST",
        "    connect_timeout: 2s",
        "    # While a host refuses connections each request that meets it is one; Envoy's own limit is 3 at a time.",
        f"    circuit_breakers: {{thresholds: [{{max_retries: {RETRIES}}}]}}",
        *_check(service),
        "    typed_extension_protocol_options:",
        "      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:",
        f'        "@type": {UPSTREAM}',
        f"        # {service.says('keepalive')}: Envoy closes first, and never writes into a closing connection.",
        f"        common_http_protocol_options: {{idle_timeout: {max(front_end.idle(service), 1)}s}}",
        "        explicit_http_config: {http_protocol_options: {}}",
        "    load_assignment:",
        f"      cluster_name: {service.name}",
        "      endpoints:",
        "      - lb_endpoints:",
        f"        # {service.says('bind')}. Another machine is another endpoint.",
        *(f"        - endpoint: {{address: {_socket(each)}{_port(service, choices)}}}" for each in found),
    ]


def _check(service: Service) -> list[str]:
    if not service.admin:
        return ["    # Without admin_bind there is no readiness path, and nothing is checked."]
    config = service.config
    return [
        f"    # {service.says('admin_bind', 'ready_path')}.",
        "    health_checks:",
        f"    - {{timeout: 1s, interval: {EVERY}s, no_traffic_interval: {EVERY}s, unhealthy_threshold: {FALL}, "
        "healthy_threshold: 1,",
        f"       http_health_check: {{path: {json.dumps(config.ready_path)}, host: tricorn}}}}",
        "    # A host that leaves is given no kept connection either.",
        "    close_connections_on_host_health_failure: true",
    ]


def _port(service: Service, choices: Choices) -> str:
    if not service.admin:
        return ""
    if choices.hosts:
        port = next(address.port for address in service.admin if not is_loopback(address))
        return f", health_check_config: {{port_value: {port}}}"
    admin = front_end.local(service.admin[0])
    return f", health_check_config: {{address: {_socket(admin)}}}"


def _public(listen: str) -> TcpAddress:
    if listen.isdigit():
        return TcpAddress("0.0.0.0", int(listen))
    host, _, port = listen.rpartition(":")
    if not port.isdigit():
        raise ConfigError(f"Invalid value for --public: {listen}: expected PORT or HOST:PORT.")
    return TcpAddress(host.strip("[]") or "0.0.0.0", int(port))


def _socket(address: TcpAddress | UnixAddress) -> str:
    if isinstance(address, UnixAddress):
        return f"{{pipe: {{path: {json.dumps(address.path)}}}}}"
    return f"{{socket_address: {{address: {json.dumps(address.host)}, port_value: {address.port}}}}}"


def _is_address(host: str) -> bool:
    import ipaddress

    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _notes(service: Service, choices: Choices) -> list[str]:
    found = list(front_end.notes(service, "Envoy", choices))
    notices = EVERY * FALL + 1
    if not service.admin:
        found.append('Set admin_bind = "127.0.0.1:8001": without it Envoy checks nothing.')
    elif service.config.drain_delay < notices:
        found.append(
            f"With several hosts behind Envoy set drain_delay = {notices}: one that leaves is taken out before it "
            f"stops to accept ({service.says('drain_delay')})."
        )
    return found
