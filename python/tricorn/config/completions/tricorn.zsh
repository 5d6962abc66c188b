#compdef tricorn
# tricorn's completions for zsh, made by `tricorn --completions zsh`
_arguments -s -S \
    '(-h)-h[Show the flags that are used most, and exit.]' \
    '(--help)--help[Show the flags that people set, and exit.]' \
    '(--help-all)--help-all[Show all flags, and exit.]' \
    '(-v --version)-v[Show the version and exit.]' \
    '(-v --version)--version[Show the version and exit.]' \
    '(--completions)--completions=[Print the completions for a shell and exit.]:value:(bash zsh fish)' \
    '(-c --config)-c+[The configuration file\: PATH, file\:PATH or python\:MODULE.]:file:_files' \
    '(-c --config)--config=[The configuration file\: PATH, file\:PATH or python\:MODULE.]:file:_files' \
    '(--paste --paster)--paste=[A PasteDeploy file that describes the application, such as production.ini or production.ini#admin.]:file:_files' \
    '(--paste --paster)--paster=[A PasteDeploy file that describes the application, such as production.ini or production.ini#admin.]:file:_files' \
    '*--paste-global=[A variable for the PasteDeploy file, KEY=VALUE.]:value: ' \
    '(--factory)--factory[Call MODULE\:ATTRIBUTE without arguments to get the application.]' \
    '*--env-file=[A file of NAME=VALUE lines with environment variables for the application.]:file:_files' \
    '(--unavailable)--unavailable=[How to handle settings of other servers that tricorn does not support\: refuse or warn.]:value:(refuse warn)' \
    '*-b+[Address to listen on\: \[https\://\]HOST\:PORT, HOST, \:PORT, unix\:PATH or fd\://NUMBER.]:value: ' \
    '*--bind=[Address to listen on\: \[https\://\]HOST\:PORT, HOST, \:PORT, unix\:PATH or fd\://NUMBER.]:value: ' \
    '(--backlog)--backlog=[Maximum number of connections waiting in the kernel to be accepted.]:value: ' \
    '(--certfile)--certfile=[Certificate and chain (PEM). Addresses without a scheme then use TLS.]:file:_files' \
    '(--keyfile)--keyfile=[Private key of `certfile` (PEM, not encrypted).]:file:_files' \
    '*--certificate=[Another certificate and its key. Repeat for more host names or key types.]:value: ' \
    '(--ca-certs)--ca-certs=[Certificates of the authorities that client certificates must be issued by (PEM).]:file:_files' \
    '(--cert-reqs)--cert-reqs=[Client certificates\: 0 not requested, 1 optional, 2 required.]:value: ' \
    '*--tls-crl-file=[Revocation lists for client certificates (CRL, PEM or DER).]:file:_files' \
    '(--tls-min-version)--tls-min-version=[Minimum TLS version\: 1.2 or 1.3.]:value:(1.2 1.3)' \
    '(--ciphers)--ciphers=[TLS 1.2 cipher suites, as an OpenSSL list (openssl-ciphers(1)).]:value: ' \
    '(--tls-require-sni)--tls-require-sni[Reject clients that send no server name, or an unknown one (alert unrecognized_name).]' \
    '(--tls-redirect)--tls-redirect[Redirect plain HTTP requests on a TLS address to https\:// (308).]' \
    '(--tls-ticket-lifetime)--tls-ticket-lifetime=[How long clients may resume a TLS session without a full handshake; 0 disables resumption.]:value: ' \
    '*--tls-ticket-key=[TLS session ticket keys, shared by several hosts so that each resumes the others'\'' sessions.]:file:_files' \
    '(--tls-reload)--tls-reload=[How often to check certificate and key files for changes; 0\: on HUP only.]:value: ' \
    '(--tls-handshake-timeout)--tls-handshake-timeout=[Maximum duration of a TLS handshake, counted from the connection.]:value: ' \
    '(--tls-key-log)--tls-key-log=[Write the keys of all connections to this file, in NSS format, for Wireshark.]:file:_files' \
    '(--http-protocols)--http-protocols=[HTTP versions to serve, preferred first\: h1, h2 or both, as in h2,h1.]:value: ' \
    '(--http2-cleartext)--http2-cleartext=[Accept HTTP/2 without TLS\: off or prior-knowledge.]:value:(off prior-knowledge both)' \
    '(--http2-max-concurrent-streams)--http2-max-concurrent-streams=[Maximum number of concurrent requests on an HTTP/2 connection.]:value: ' \
    '(--http2-initial-window-size)--http2-initial-window-size=[Flow-control window with which an HTTP/2 request body starts, in bytes.]:value: ' \
    '(--http2-max-header-list-size)--http2-max-header-list-size=[Maximum size of the headers of an HTTP/2 request in bytes; 0\: the built-in maximum.]:value: ' \
    '(--http2-idle-timeout)--http2-idle-timeout=[Seconds to keep an HTTP/2 connection open without a request.]:value: ' \
    '(--http2-max-window)--http2-max-window=[Bytes up to which the flow-control window of an HTTP/2 request body grows.]:value: ' \
    '(--http2-reset-limit)--http2-reset-limit=[Number of HTTP/2 requests that a connection may reset at once; a tenth more each second.]:value: ' \
    '(--http2-control-limit)--http2-control-limit=[Number of HTTP/2 frames without content that a connection may send at once; a tenth more each second.]:value: ' \
    '*--admin-bind=[Address of the admin listener\: health, readiness and metrics.]:value: ' \
    '(--health-path)--health-path=[Path on the admin listener that answers 200 while the server is running.]:value: ' \
    '(--ready-path)--ready-path=[Path on the admin listener that answers 200 when the server is ready for requests, 503 otherwise.]:value: ' \
    '(--metrics-path)--metrics-path=[Path of the metrics of all workers on the admin listener; empty\: disabled.]:value: ' \
    '(--admin-page)--admin-page=[Path of a page with live figures and charts on the admin listener; empty\: disabled.]:value: ' \
    '(--admin-status)--admin-status[Serve the state of the server and its workers as JSON at /status of the admin listener.]' \
    '(--metrics-app)--metrics-app=[Manage prometheus_client'\''s multiprocess mode and merge its metrics into metrics_path\: auto or off.]:value:(auto off)' \
    '(--route-metrics)--route-metrics=[Maximum number of routes with their own metrics; 0 disables them.]:value: ' \
    '(--admin-allow)--admin-allow=[IP addresses or networks that may use the admin listener.]:value: ' \
    '(-w --workers)-w+[Number of worker processes; auto\: as many as the CPUs can use.]:value: ' \
    '(-w --workers)--workers=[Number of worker processes; auto\: as many as the CPUs can use.]:value: ' \
    '(-k --worker-class)-k+[Worker class\: auto, sync, gthread, gevent, eventlet, asgi, tornado or aiohttp.]:value:(auto sync gthread gevent eventlet asgi tornado aiohttp)' \
    '(-k --worker-class)--worker-class=[Worker class\: auto, sync, gthread, gevent, eventlet, asgi, tornado or aiohttp.]:value:(auto sync gthread gevent eventlet asgi tornado aiohttp)' \
    '(--worker-class-strict)--worker-class-strict[Refuse worker classes that do their own socket I/O.]' \
    '(--threads)--threads=[Number of threads per worker; each runs one request.]:value: ' \
    '(--worker-connections)--worker-connections=[Maximum number of requests running at once in a greenlet or event loop worker.]:value: ' \
    '(--no-green-drivers)--no-green-drivers[Do not patch C drivers in greenlet workers.]' \
    '(--max-requests)--max-requests=[Replace a worker after this many requests; 0 disables it.]:value: ' \
    '(--max-requests-jitter)--max-requests-jitter=[Random jitter added to max_requests, so that workers do not restart at the same time.]:value: ' \
    '(-t --timeout)-t+[Replace the worker if a request makes no progress for this many seconds; 0 disables it.]:value: ' \
    '(-t --timeout)--timeout=[Replace the worker if a request makes no progress for this many seconds; 0 disables it.]:value: ' \
    '(--graceful-timeout)--graceful-timeout=[How long a worker may take to finish its requests during shutdown.]:value: ' \
    '(--keep-alive)--keep-alive=[Seconds to keep an idle connection open for the next request.]:value: ' \
    '(--connection-max-requests)--connection-max-requests=[Close a connection after this many requests; 0\: unlimited.]:value: ' \
    '(--connection-max-age)--connection-max-age=[Close a connection after this many seconds, with its next response; 0\: unlimited.]:value: ' \
    '(--request-timeout)--request-timeout=[Maximum seconds the application may take for a request; 0 disables it.]:value: ' \
    '(--boot-timeout)--boot-timeout=[Seconds within which a worker must load the application; 0 disables it.]:value: ' \
    '(--max-worker-memory)--max-worker-memory=[Replace a worker when it uses more resident memory; 0 disables it.]:value: ' \
    '(--max-worker-lifetime)--max-worker-lifetime=[Replace a worker after this many seconds; 0 disables it.]:value: ' \
    '(--max-worker-lifetime-jitter)--max-worker-lifetime-jitter=[Random jitter added to max_worker_lifetime.]:value: ' \
    '(--drain-delay)--drain-delay=[Keep serving for this many seconds after TERM, with the readiness path answering 503.]:value: ' \
    '(--canary)--canary=[Workers that a reload begins with, compared with the old ones; 0\: all at once.]:value: ' \
    '(--canary-time)--canary-time=[Seconds for which canaries are compared with the old workers.]:value: ' \
    '(--asgi-loop)--asgi-loop=[Event loop of asgi workers\: auto, asyncio or uvloop.]:value:(auto asyncio uvloop)' \
    '(--asgi-lifespan)--asgi-lifespan=[ASGI lifespan events (startup and shutdown)\: auto, on or off.]:value:(auto on off)' \
    '(--asgi-disconnect-grace-period)--asgi-disconnect-grace-period=[Seconds an ASGI task may continue after its client disconnects.]:value: ' \
    '(--asgi-pathsend)--asgi-pathsend[Let ASGI applications send files by path (http.response.pathsend).]' \
    '(--root-path)--root-path=[Path prefix removed by the front end, for ASGI'\''s root_path.]:value: ' \
    '(--websocket-max-message-size)--websocket-max-message-size=[Maximum size of a received WebSocket message in bytes; 0\: unlimited.]:value: ' \
    '(--websocket-ping-interval)--websocket-ping-interval=[Ping a WebSocket client after this many seconds of silence; 0 disables it.]:value: ' \
    '(--websocket-ping-timeout)--websocket-ping-timeout=[Seconds to wait for the answer to a WebSocket ping; 0\: unlimited.]:value: ' \
    '(--no-websocket-compression)--no-websocket-compression[Disable WebSocket compression.]' \
    '(--queue-limit)--queue-limit=[Maximum number of requests waiting in a worker; 0\: unlimited.]:value: ' \
    '(--queue-timeout)--queue-timeout=[Maximum seconds a request may wait for a free thread; 0 disables it.]:value: ' \
    '(--queue-order)--queue-order=[Order of waiting requests\: fifo or adaptive.]:value:(fifo adaptive)' \
    '(--max-concurrency)--max-concurrency=[Maximum number of requests running at once in all workers; a number or auto, 0\: the number of threads.]:value: ' \
    '(--no-handover)--no-handover[Keep every connection on the worker that accepted it.]' \
    '(--affinity)--affinity=[Send requests of one session to the worker that has it\: auto, off, or where the session is named.]:value: ' \
    '(--preload --mold)--preload[Load the application once, before forking, so that workers share its memory.]' \
    '(--preload --mold)--mold[Load the application once, before forking, so that workers share its memory.]' \
    '(--refork)--refork=[Fork workers from one that has served so many requests, whose memory is warm.]:value: ' \
    '*--warmup=[A path that the application answers once before its workers serve, to fill caches.]:value: ' \
    '(--no-sendfile)--no-sendfile[Copy files into responses instead of using sendfile(2).]' \
    '(--reuse-port)--reuse-port[Give each worker its own listening socket (SO_REUSEPORT).]' \
    '(--chdir)--chdir=[Change to this directory, and import modules from it.]:directory:_files -/' \
    '(-D --daemon)-D[Run in the background, detached from the terminal.]' \
    '(-D --daemon)--daemon[Run in the background, detached from the terminal.]' \
    '*-e+[An environment variable for the application, KEY=VALUE.]:value: ' \
    '*--env=[An environment variable for the application, KEY=VALUE.]:value: ' \
    '(-p --pid)-p+[Write the server'\''s process id to this file.]:file:_files' \
    '(-p --pid)--pid=[Write the server'\''s process id to this file.]:file:_files' \
    '(-u --user)-u+[Run workers as this user (name or number).]:user:_users' \
    '(-u --user)--user=[Run workers as this user (name or number).]:user:_users' \
    '(-g --group)-g+[Run workers as this group (name or number).]:group:_groups' \
    '(-g --group)--group=[Run workers as this group (name or number).]:group:_groups' \
    '(-m --umask)-m+[Permissions to remove from files that the server creates (umask(2)).]:value: ' \
    '(-m --umask)--umask=[Permissions to remove from files that the server creates (umask(2)).]:value: ' \
    '(--initgroups)--initgroups[Give workers all groups of their user.]' \
    '(--pythonpath)--pythonpath=[Comma-separated directories to search for modules first.]:value: ' \
    '(--control-socket)--control-socket=[Path of the control socket for `tricorn ctl`; `auto` selects a directory.]:value: ' \
    '(--control-socket-mode)--control-socket-mode=[Permissions of the control socket.]:value: ' \
    '(--no-control-socket)--no-control-socket[Do not create a control socket; `tricorn ctl` then cannot find the server.]' \
    '(--control-read-only)--control-read-only[Allow users other than root and the server'\''s own to query only.]' \
    '(-n --name)-n+[Name shown in process titles instead of the application'\''s.]:value: ' \
    '(-n --name)--name=[Name shown in process titles instead of the application'\''s.]:value: ' \
    '(--title-prefix)--title-prefix=[Prefix of process titles.]:value: ' \
    '(--memory-budget)--memory-budget=[Bytes of memory a worker may use for buffering.]:value: ' \
    '(--disk-budget)--disk-budget=[Bytes of temporary files the server may use for buffering.]:value: ' \
    '(--header-timeout)--header-timeout=[Seconds within which the complete request headers must arrive.]:value: ' \
    '(--body-timeout)--body-timeout=[Seconds a request body may take before body_min_rate applies.]:value: ' \
    '(--body-min-rate)--body-min-rate=[Minimum rate of a request body in bytes per second, after body_timeout.]:value: ' \
    '(--write-timeout)--write-timeout=[Abort a response after this many seconds without progress.]:value: ' \
    '(--no-request-buffering)--no-request-buffering[Call WSGI applications as soon as the request headers are complete, without waiting for the body.]' \
    '(--response-buffering)--response-buffering=[Buffer responses on disk for slow clients\: auto, on or off.]:value: ' \
    '(--max-connections)--max-connections=[Maximum open connections per worker, idle ones included; 0\: as many as the descriptor limit allows.]:value: ' \
    '(--limit-request-line)--limit-request-line=[Maximum size of the request line in bytes; 0\: the built-in maximum.]:value: ' \
    '(--limit-request-fields)--limit-request-fields=[Maximum number of request headers; 0\: the built-in maximum.]:value: ' \
    '(--limit-request-field_size --limit-request-field-size)--limit-request-field_size=[Maximum size of a request header in bytes; 0\: the built-in maximum.]:value: ' \
    '(--limit-request-field_size --limit-request-field-size)--limit-request-field-size=[Maximum size of a request header in bytes; 0\: the built-in maximum.]:value: ' \
    '(--limit-request-body)--limit-request-body=[Maximum size of a request body in bytes; 0\: unlimited.]:value: ' \
    '(--trusted-proxies)--trusted-proxies=[Addresses or networks of trusted proxies and load balancers.]:value: ' \
    '(--forwarder-headers)--forwarder-headers=[Upper-case header names with an underscore that a front end may set in the environ.]:value: ' \
    '(--proxy-protocol)--proxy-protocol=[Accept the PROXY protocol from load balancers\: off, v1, v2 or auto (both).]:value:(off v1 v2 auto)' \
    '(--proxy-protocol-required)--proxy-protocol-required[Reject connections without a `proxy_protocol` header.]' \
    '(--protocol)--protocol=[Protocol of front ends at addresses without a scheme\: http, uwsgi, scgi or fastcgi.]:value:(http uwsgi scgi fastcgi)' \
    '(--trusted-proxy-headers)--trusted-proxy-headers=[Forwarded headers to apply\: any of x-forwarded-for, x-forwarded-proto, x-forwarded-host, x-forwarded-port and x-forwarded-by, or forwarded (RFC 7239).]:value: ' \
    '(--trusted-proxy-count)--trusted-proxy-count=[Number of front ends that a request passes through.]:value: ' \
    '(--no-clear-untrusted-proxy-headers)--no-clear-untrusted-proxy-headers[Pass forwarded headers that are not applied on to the application.]' \
    '(--header-map)--header-map=[How to handle header names with an underscore\: drop, refuse or dangerous.]:value:(drop refuse dangerous)' \
    '*--leniency=[Malformed requests to accept, by the names of gunicorn'\''s settings.]:value: ' \
    '(--no-server-header)--no-server-header[Do not send the Server header.]' \
    '(--no-date-header)--no-date-header[Do not send the Date header.]' \
    '*--header=[Add a header to every response of the application, NAME\:VALUE.]:value: ' \
    '(--load-report)--load-report=[Report the server'\''s load to trusted peers in response headers\: off or orca.]:value:(off orca)' \
    '(--stream-drain)--stream-drain=[Maximum seconds over which a worker shutting down ends event streams and WebSockets; 0 ends all at once.]:value: ' \
    '(--sse-retry)--sse-retry=[Range of random reconnection delays for clients of event streams that end at shutdown, in milliseconds.]:value: ' \
    '(--sse-ping)--sse-ping=[Send a comment to an event stream after this many seconds of silence; 0 disables it.]:value: ' \
    '(--compress)--compress=[Compress responses\: off, on, or some of zstd, br, gzip, preferred first.]:value: ' \
    '*--compress-type=[Media type of responses to compress, as in text/html, text/* or *+json. May be repeated.]:value: ' \
    '(--compress-private)--compress-private[Also compress responses to requests with cookies or credentials.]' \
    '*--static-map=[Serve the files of a directory\: PREFIX=DIR, with Cache-Control directives behind commas.]:value: ' \
    '*--x-sendfile=[Directory whose files the application may name in X-Sendfile; PREFIX=DIR for X-Accel-Redirect.]:value: ' \
    '(--access-logfile)--access-logfile=[Access log file; `-` is stdout.]:file:_files' \
    '(--disable-redirect-access-to-syslog)--disable-redirect-access-to-syslog[Do not send the access log to syslog.]' \
    '(--access-logformat)--access-logformat=[Access log format\: text with atoms such as %(h)s and %(s)s.]:value: ' \
    '(--error-logfile --log-file)--error-logfile=[Error log file; `-` is stderr.]:file:_files' \
    '(--error-logfile --log-file)--log-file=[Error log file; `-` is stderr.]:file:_files' \
    '(--log-level)--log-level=[Minimum level of messages to log\: debug, info, warning, error or critical.]:value:(debug info warning error critical)' \
    '(--log-streams)--log-streams=[Streams for an error log of `-`\: stderr, or split by level.]:value:(stderr split)' \
    '(--log-format --log-style)--log-format=[Format of both logs\: pretty, gunicorn, json, or auto (pretty on a terminal, otherwise gunicorn).]:value:(auto pretty gunicorn json)' \
    '(--log-format --log-style)--log-style=[Format of both logs\: pretty, gunicorn, json, or auto (pretty on a terminal, otherwise gunicorn).]:value:(auto pretty gunicorn json)' \
    '(--request-id)--request-id[Give each request an ID, or use the one in X-Request-ID.]' \
    '(--capture-output)--capture-output[Redirect the application'\''s stdout and stderr to the error log.]' \
    '(--logger-class)--logger-class=[Logger class for both logs, as module.Class.]:value: ' \
    '(--log-config)--log-config=[Configuration file for Python'\''s logging\: .ini for fileConfig, .json or .yaml for dictConfig.]:file:_files' \
    '(-R --enable-stdio-inheritance)-R[Keep the standard streams of a daemon open.]' \
    '(-R --enable-stdio-inheritance)--enable-stdio-inheritance[Keep the standard streams of a daemon open.]' \
    '(--log-syslog-to)--log-syslog-to=[Address of the syslog server\: udp\://HOST\:PORT, tcp\://HOST\:PORT or unix\://PATH.]:value: ' \
    '(--log-syslog)--log-syslog[Send both logs to syslog too.]' \
    '(--log-syslog-prefix)--log-syslog-prefix=[Program name in syslog messages\: gunicorn.PREFIX.error and gunicorn.PREFIX.access.]:value: ' \
    '(--log-syslog-facility)--log-syslog-facility=[Syslog facility, such as user or local3.]:value:(auth authpriv cron daemon ftp kern lpr mail news security syslog user uucp local0 local1 local2 local3 local4 local5 local6 local7)' \
    '(--syslog-format)--syslog-format=[Syslog message format\: gunicorn, or rfc5424 with time, host and length.]:value:(gunicorn rfc5424)' \
    '(--statsd-host)--statsd-host=[Address of a StatsD server for request metrics.]:value: ' \
    '(--dogstatsd-tags)--dogstatsd-tags=[Comma-separated tags for Datadog metrics.]:value: ' \
    '(--statsd-prefix)--statsd-prefix=[Prefix of StatsD metric names; a dot is added.]:value: ' \
    '(--statsd-datagram)--statsd-datagram=[Maximum bytes of a StatsD datagram, which combines several metrics; 0 sends each metric at once.]:value: ' \
    '(--statsd-extended)--statsd-extended[Send metrics that gunicorn does not have\: queue.duration, requests.running, requests.waiting, memory.pss.]' \
    '(--enable-backlog-metric)--enable-backlog-metric[Send the length of the listen backlog once a second, as a histogram.]' \
    '(--doctor)--doctor=[How to handle libraries that block a greenlet worker\: off, observe or heal.]:value:(off observe heal)' \
    '(--doctor-level)--doctor-level=[How early and how closely the doctor looks\: quiet, normal or thorough.]:value:(quiet normal thorough)' \
    '*--offload=[A function or method that greenlet workers run in a thread\: package.module\:Class.method.]:value: ' \
    '(--offload-threads)--offload-threads=[Maximum number of threads for offloaded calls in a greenlet worker.]:value: ' \
    '(--reload)--reload[Restart workers when a file of the application changes. For development.]' \
    '(--reload-engine)--reload-engine=[How to detect changes\: auto, poll, or watchfiles (inotify).]:value:(auto poll inotify watchfiles)' \
    '*--reload-extra-file=[Another file or pattern for reload to watch, such as templates.]:file:_files' \
    '*--reload-dir=[A directory for reload to watch for Python files, recursively, besides imported modules.]:directory:_files -/' \
    '*--reload-include=[A pattern of other files for reload to watch in reload_dirs\: '\''*.html'\''.]:value: ' \
    '*--reload-exclude=[A pattern of files and directories for reload to ignore.]:value: ' \
    '(--spew)--spew[Print every line of Python code as it runs to stderr. Very slow.]' \
    '(--check-config)--check-config[Check the configuration and the application, and exit\: 0 if they are valid, 1 if not.]' \
    '(--print-config)--print-config[Show all settings and their origin, changed ones first, and check as --check-config.]' \
    ':application: '
