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
    '(--paste --paster)--paste=[A PasteDeploy file that describes the application, as production.ini or production.ini#admin.]:file:_files' \
    '(--paste --paster)--paster=[A PasteDeploy file that describes the application, as production.ini or production.ini#admin.]:file:_files' \
    '*--paste-global=[A variable of the PasteDeploy file, as KEY=VALUE.]:value: ' \
    '(--factory)--factory[The application is what MODULE\:ATTRIBUTE returns when it is called without arguments.]' \
    '*--env-file=[A file of NAME=VALUE lines\: variables for the application.]:file:_files' \
    '(--unavailable)--unavailable=[What becomes of settings of other servers that tricorn does not have\: refuse or warn.]:value:(refuse warn)' \
    '*-b+[Where to listen\: \[https\://\]HOST\:PORT, HOST, \:PORT, unix\:PATH or fd\://NUMBER.]:value: ' \
    '*--bind=[Where to listen\: \[https\://\]HOST\:PORT, HOST, \:PORT, unix\:PATH or fd\://NUMBER.]:value: ' \
    '(--backlog)--backlog=[How many new connections the kernel keeps until a worker takes them.]:value: ' \
    '(--certfile)--certfile=[The server'\''s certificate and its chain (PEM)\: with one, addresses without a scheme speak TLS.]:file:_files' \
    '(--keyfile)--keyfile=[The private key of `certfile` (PEM, not encrypted).]:file:_files' \
    '*--certificate=[A certificate, and behind a colon its key\: as often as there are some, for other names or key types.]:value: ' \
    '(--ca-certs)--ca-certs=[Certificates of the authorities whose client certificates are accepted (PEM).]:file:_files' \
    '(--cert-reqs)--cert-reqs=[Whether clients are asked for a certificate\: 0 no, 1 it may be missing, 2 it is required.]:value: ' \
    '*--tls-crl-file=[Lists of client certificates that are revoked (CRL, PEM or DER).]:file:_files' \
    '(--tls-min-version)--tls-min-version=[The lowest version of TLS that is spoken\: 1.2 or 1.3.]:value:(1.2 1.3)' \
    '(--ciphers)--ciphers=[Cipher suites of TLS 1.2, as OpenSSL'\''s list (openssl-ciphers(1)).]:value: ' \
    '(--tls-require-sni)--tls-require-sni[Refuses clients that name no server, or one that no certificate is for (alert unrecognized_name).]' \
    '(--tls-redirect)--tls-redirect[Answers requests in the clear at an address that speaks TLS with 308 to https\://.]' \
    '(--tls-ticket-lifetime)--tls-ticket-lifetime=[How long a client may resume a session without a full handshake; 0\: no resumption.]:value: ' \
    '*--tls-ticket-key=[Files with keys of session tickets, so that several hosts resume one another'\''s sessions.]:file:_files' \
    '(--tls-reload)--tls-reload=[How often files of certificates and keys are looked at for changes; 0\: on HUP only.]:value: ' \
    '(--tls-handshake-timeout)--tls-handshake-timeout=[How long a handshake may take, from the connection on; a slower one is closed.]:value: ' \
    '(--tls-key-log)--tls-key-log=[A file to which the keys of all connections are written, in NSS'\''s format, for Wireshark.]:file:_files' \
    '*--admin-bind=[The socket to bind for health and readiness questions, and for metrics.]:value: ' \
    '(--health-path)--health-path=[The path at which the admin listener answers 200 while the server lives.]:value: ' \
    '(--ready-path)--ready-path=[The path at which the admin listener answers 200 while requests are welcome, and 503 otherwise.]:value: ' \
    '(--metrics-path)--metrics-path=[The path at which the admin listener tells the metrics of all workers; empty\: nowhere.]:value: ' \
    '(--admin-page)--admin-page=[The path at which the admin listener shows a page with live figures and charts; empty\: nowhere.]:value: ' \
    '(--admin-status)--admin-status[Tell the state of the server and of each worker as JSON at /status of the admin listener.]' \
    '(--metrics-app)--metrics-app=[Whether prometheus_client'\''s multiprocess mode is looked after, and its metrics are among those of metrics_path\: auto or off.]:value:(auto off)' \
    '(--route-metrics)--route-metrics=[How many routes of the application have metrics of their own; 0 counts none.]:value: ' \
    '(--admin-allow)--admin-allow=[The IP addresses or networks from which questions at the admin listener are answered.]:value: ' \
    '(-w --workers)-w+[How many processes serve requests; auto is as many as fill the processors.]:value: ' \
    '(-w --workers)--workers=[How many processes serve requests; auto is as many as fill the processors.]:value: ' \
    '(-k --worker-class)-k+[How workers run requests\: auto, sync, gthread, gevent, eventlet, asgi, tornado or aiohttp.]:value:(auto sync gthread gevent eventlet asgi tornado aiohttp)' \
    '(-k --worker-class)--worker-class=[How workers run requests\: auto, sync, gthread, gevent, eventlet, asgi, tornado or aiohttp.]:value:(auto sync gthread gevent eventlet asgi tornado aiohttp)' \
    '(--worker-class-strict)--worker-class-strict[Refuses a worker class that reads and writes its connections itself.]' \
    '(--threads)--threads=[How many requests one worker runs at once, each in a thread of its own.]:value: ' \
    '(--worker-connections)--worker-connections=[The maximum number of requests that a worker with greenlets or an event loop runs at once.]:value: ' \
    '(--no-green-drivers)--no-green-drivers[Leaves drivers written in C as they are in greenlet workers.]' \
    '(--max-requests)--max-requests=[Replace a worker after this many requests; 0 switches it off.]:value: ' \
    '(--max-requests-jitter)--max-requests-jitter=[Up to how many requests are added to max_requests by chance, so that workers do not leave together.]:value: ' \
    '(-t --timeout)-t+[Seconds without progress after which the worker of a request is replaced; 0 switches it off.]:value: ' \
    '(-t --timeout)--timeout=[Seconds without progress after which the worker of a request is replaced; 0 switches it off.]:value: ' \
    '(--graceful-timeout)--graceful-timeout=[How long a worker may finish its requests after it was told to stop.]:value: ' \
    '(--keep-alive)--keep-alive=[Seconds an idle connection stays open for its next request.]:value: ' \
    '(--connection-max-requests)--connection-max-requests=[Requests after which a connection is closed; 0 is any number.]:value: ' \
    '(--connection-max-age)--connection-max-age=[Seconds after which a connection is closed behind its next reply; 0 is any time.]:value: ' \
    '(--request-timeout)--request-timeout=[Seconds an application may take for one request; 0 switches it off.]:value: ' \
    '(--boot-timeout)--boot-timeout=[Seconds in which a worker must have loaded the application; 0 switches it off.]:value: ' \
    '(--max-worker-memory)--max-worker-memory=[Resident bytes beyond which a worker is replaced; 0 switches it off.]:value: ' \
    '(--max-worker-lifetime)--max-worker-lifetime=[Seconds after which a worker is replaced; 0 switches it off.]:value: ' \
    '(--max-worker-lifetime-jitter)--max-worker-lifetime-jitter=[Up to how many seconds are added to max_worker_lifetime by chance.]:value: ' \
    '(--drain-delay)--drain-delay=[Seconds to go on serving after TERM, with the readiness path answering 503.]:value: ' \
    '(--asgi-loop)--asgi-loop=[The event loop of asgi workers\: auto, asyncio or uvloop.]:value:(auto asyncio uvloop)' \
    '(--asgi-lifespan)--asgi-lifespan=[Whether an ASGI application is told of start and end (lifespan)\: auto, on or off.]:value:(auto on off)' \
    '(--asgi-disconnect-grace-period)--asgi-disconnect-grace-period=[Seconds an ASGI task may go on after its client disconnected.]:value: ' \
    '(--asgi-pathsend)--asgi-pathsend[Offer ASGI applications to send files by path (http.response.pathsend).]' \
    '(--root-path)--root-path=[The path prefix that a front end takes away, for root_path of ASGI.]:value: ' \
    '(--websocket-max-message-size)--websocket-max-message-size=[The maximum size of a received WebSocket message in bytes; 0 is no limit.]:value: ' \
    '(--websocket-ping-interval)--websocket-ping-interval=[Seconds of silence after which a WebSocket'\''s client is sent a ping; 0 switches it off.]:value: ' \
    '(--websocket-ping-timeout)--websocket-ping-timeout=[Seconds a WebSocket'\''s client may take to answer a ping; 0 is as long as it likes.]:value: ' \
    '(--no-websocket-compression)--no-websocket-compression[Leaves messages of WebSockets uncompressed.]' \
    '(--queue-limit)--queue-limit=[The number of requests that may wait in a worker for a free thread; 0 is no limit.]:value: ' \
    '(--queue-timeout)--queue-timeout=[Seconds a request may wait for a free thread; 0 switches it off.]:value: ' \
    '(--queue-order)--queue-order=[Which of the waiting requests is served next\: fifo or adaptive.]:value:(fifo adaptive)' \
    '(--max-concurrency)--max-concurrency=[The most requests that run at once in all workers together; a number or auto, 0 is as many as threads.]:value: ' \
    '(--no-handover)--no-handover[Leaves every connection with the worker that accepted it.]' \
    '(--preload)--preload[Load the application once, before workers are forked\: they share its memory.]' \
    '(--no-sendfile)--no-sendfile[Copy files into responses instead of calling sendfile(2).]' \
    '(--reuse-port)--reuse-port[Give each worker a listening socket of its own (SO_REUSEPORT).]' \
    '(--chdir)--chdir=[The directory to work in; modules are looked for there.]:directory:_files -/' \
    '(-D --daemon)-D[Go on in the background, without a terminal.]' \
    '(-D --daemon)--daemon[Go on in the background, without a terminal.]' \
    '*-e+[A variable for the environment of the application, KEY=VALUE.]:value: ' \
    '*--env=[A variable for the environment of the application, KEY=VALUE.]:value: ' \
    '(-p --pid)-p+[A file to write the process id of the server into.]:file:_files' \
    '(-p --pid)--pid=[A file to write the process id of the server into.]:file:_files' \
    '(-u --user)-u+[The user as which workers run\: a name or a number.]:user:_users' \
    '(-u --user)--user=[The user as which workers run\: a name or a number.]:user:_users' \
    '(-g --group)-g+[The group as which workers run\: a name or a number.]:group:_groups' \
    '(-g --group)--group=[The group as which workers run\: a name or a number.]:group:_groups' \
    '(-m --umask)-m+[Permissions that files made by the server do not get, as umask(2) has them.]:value: ' \
    '(-m --umask)--umask=[Permissions that files made by the server do not get, as umask(2) has them.]:value: ' \
    '(--initgroups)--initgroups[Give worker processes all groups of which their user is a member.]' \
    '(--pythonpath)--pythonpath=[Directories, with commas between them, in which modules are looked for first.]:value: ' \
    '(--control-socket)--control-socket=[The path of the control socket, for `tricorn ctl`; `auto` finds a place.]:value: ' \
    '(--control-socket-mode)--control-socket-mode=[The permissions of the control socket'\''s file.]:value: ' \
    '(--no-control-socket)--no-control-socket[Open no control socket; `tricorn ctl` then finds no server.]' \
    '(--control-read-only)--control-read-only[Lets users other than root and the server'\''s own only look.]' \
    '(-n --name)-n+[The name in the titles of processes, in place of the application'\''s.]:value: ' \
    '(-n --name)--name=[The name in the titles of processes, in place of the application'\''s.]:value: ' \
    '(--title-prefix)--title-prefix=[What the titles of processes begin with.]:value: ' \
    '(--memory-budget)--memory-budget=[Bytes of memory that a worker may hold for its clients.]:value: ' \
    '(--disk-budget)--disk-budget=[Bytes of temporary files that the server may keep for its clients.]:value: ' \
    '(--header-timeout)--header-timeout=[Seconds in which a whole request head must have arrived.]:value: ' \
    '(--body-timeout)--body-timeout=[Seconds a request body may take before its minimum rate counts.]:value: ' \
    '(--body-min-rate)--body-min-rate=[Bytes a second at which a request body must arrive after that.]:value: ' \
    '(--write-timeout)--write-timeout=[Seconds without progress after which a response is given up.]:value: ' \
    '(--no-request-buffering)--no-request-buffering[Calls WSGI applications when the head of a request is there, and not its body.]' \
    '(--response-buffering)--response-buffering=[Keeps on disk what slow clients do not take of responses\: auto, on or off.]:value: ' \
    '(--max-connections)--max-connections=[Open connections of a worker, idle ones included; 0 is as many as its descriptor limit allows.]:value: ' \
    '(--limit-request-line)--limit-request-line=[Most bytes of a request line; 0 is the largest there is.]:value: ' \
    '(--limit-request-fields)--limit-request-fields=[Most header fields of a request; 0 is the largest there is.]:value: ' \
    '(--limit-request-field_size --limit-request-field-size)--limit-request-field_size=[Most bytes of one header field; 0 is the largest there is.]:value: ' \
    '(--limit-request-field_size --limit-request-field-size)--limit-request-field-size=[Most bytes of one header field; 0 is the largest there is.]:value: ' \
    '(--limit-request-body)--limit-request-body=[The maximum size of a request body in bytes; 0 is no limit.]:value: ' \
    '(--trusted-proxies)--trusted-proxies=[Addresses or networks of proxies and balancers that may say who the client is.]:value: ' \
    '(--forwarder-headers)--forwarder-headers=[Upper-case header names with an underscore that a front end may set in the environ.]:value: ' \
    '(--proxy-protocol)--proxy-protocol=[Which version of the PROXY protocol balancers announce connections by\: off, v1, v2 or auto (both).]:value:(off v1 v2 auto)' \
    '(--proxy-protocol-required)--proxy-protocol-required[Refuses connections that do not begin with a `proxy_protocol` header.]' \
    '(--trusted-proxy-headers)--trusted-proxy-headers=[Which forwarded headers of front ends are applied to a request\: some of x-forwarded-for, x-forwarded-proto, x-forwarded-host, x-forwarded-port and x-forwarded-by, or forwarded (RFC 7239).]:value: ' \
    '(--trusted-proxy-count)--trusted-proxy-count=[How many front ends a request passes, one behind the other.]:value: ' \
    '(--no-clear-untrusted-proxy-headers)--no-clear-untrusted-proxy-headers[Leaves the application forwarded headers that are not applied.]' \
    '(--header-map)--header-map=[What to do with header names that contain an underscore\: drop, refuse or dangerous.]:value:(drop refuse dangerous)' \
    '*--leniency=[What malformed requests are accepted, by gunicorn'\''s names of these settings.]:value: ' \
    '(--no-server-header)--no-server-header[Leaves the field Server out of responses.]' \
    '(--no-date-header)--no-date-header[Leaves the field Date out of responses.]' \
    '*--header=[A field for every response of the application, NAME\:VALUE.]:value: ' \
    '(--load-report)--load-report=[How responses tell trusted peers the load of this server\: off or orca.]:value:(off orca)' \
    '(--stream-drain)--stream-drain=[Most seconds over which a worker that leaves ends event streams and WebSockets; 0 ends all at once.]:value: ' \
    '(--sse-retry)--sse-retry=[Milliseconds, at random, that clients wait whose event streams end since the worker leaves.]:value: ' \
    '(--sse-ping)--sse-ping=[Seconds after which a silent event stream is sent a comment; 0 sends none.]:value: ' \
    '(--access-logfile)--access-logfile=[The file for a line about each request; `-` is stdout.]:file:_files' \
    '(--disable-redirect-access-to-syslog)--disable-redirect-access-to-syslog[Send only the error log to syslog.]' \
    '(--access-logformat)--access-logformat=[The line about a request\: text with atoms such as %(h)s and %(s)s.]:value: ' \
    '(--error-logfile --log-file)--error-logfile=[The file for what the server and the application say; `-` is stderr.]:file:_files' \
    '(--error-logfile --log-file)--log-file=[The file for what the server and the application say; `-` is stderr.]:file:_files' \
    '(--log-level)--log-level=[What is logged\: debug, info, warning, error or critical, and what is worse.]:value:(debug info warning error critical)' \
    '(--log-streams)--log-streams=[Where an Error log of `-` goes\: stderr, or split by level.]:value:(stderr split)' \
    '(--log-format --log-style)--log-format=[How lines of both logs look\: pretty, gunicorn, json, or auto\: pretty on a terminal, else gunicorn.]:value:(auto pretty gunicorn json)' \
    '(--log-format --log-style)--log-style=[How lines of both logs look\: pretty, gunicorn, json, or auto\: pretty on a terminal, else gunicorn.]:value:(auto pretty gunicorn json)' \
    '(--request-id)--request-id[Give each request an identifier, and take over the one in X-Request-ID.]' \
    '(--capture-output)--capture-output[Put what the application prints into the error log.]' \
    '(--logger-class)--logger-class=[The class that makes both logs, as module.Class.]:value: ' \
    '(--log-config)--log-config=[A file for Python'\''s logging\: .ini as for fileConfig, .json or .yaml as for dictConfig.]:file:_files' \
    '(-R --enable-stdio-inheritance)-R[Leave a daemon its standard streams.]' \
    '(-R --enable-stdio-inheritance)--enable-stdio-inheritance[Leave a daemon its standard streams.]' \
    '(--log-syslog-to)--log-syslog-to=[Where syslog listens\: udp\://HOST\:PORT, tcp\://HOST\:PORT or unix\://PATH.]:value: ' \
    '(--log-syslog)--log-syslog[Send both logs to syslog as well.]' \
    '(--log-syslog-prefix)--log-syslog-prefix=[The program name in messages to syslog is gunicorn.PREFIX.error and gunicorn.PREFIX.access.]:value: ' \
    '(--log-syslog-facility)--log-syslog-facility=[The facility of messages to syslog, such as user or local3.]:value:(auth authpriv cron daemon ftp kern lpr mail news security syslog user uucp local0 local1 local2 local3 local4 local5 local6 local7)' \
    '(--syslog-format)--syslog-format=[The format of messages to syslog\: gunicorn'\''s, or rfc5424 with time, host and length.]:value:(gunicorn rfc5424)' \
    '(--statsd-host)--statsd-host=[The address of a StatsD server for metrics of requests.]:value: ' \
    '(--dogstatsd-tags)--dogstatsd-tags=[Tags of metrics for Datadog, with commas between them.]:value: ' \
    '(--statsd-prefix)--statsd-prefix=[What names of StatsD metrics begin with; a point is added.]:value: ' \
    '(--statsd-datagram)--statsd-datagram=[Most bytes of a datagram in which metrics of requests are sent together; 0 sends each alone, at once.]:value: ' \
    '(--statsd-extended)--statsd-extended[Send metrics that gunicorn does not have\: queue.duration, requests.running, requests.waiting.]' \
    '(--enable-backlog-metric)--enable-backlog-metric[Send the length of the listeners'\'' backlog as a histogram, once a second.]' \
    '(--doctor)--doctor=[What is done about libraries that block a greenlet worker\: off, observe or heal.]:value:(off observe heal)' \
    '(--doctor-level)--doctor-level=[How soon the doctor speaks and how closely it looks\: quiet, normal or thorough.]:value:(quiet normal thorough)' \
    '*--offload=[A function or a method that greenlet workers have a thread call\: package.module\:Class.method.]:value: ' \
    '(--offload-threads)--offload-threads=[The most threads of a greenlet worker that make offloaded calls.]:value: ' \
    '(--reload)--reload[Start new workers when a file of the application changes. For development.]' \
    '(--reload-engine)--reload-engine=[How changes are noticed\: auto, poll, or watchfiles (inotify).]:value:(auto poll inotify watchfiles)' \
    '*--reload-extra-file=[A further file or pattern that reload watches\: templates, for example.]:file:_files' \
    '*--reload-dir=[A directory whose files of Python, in any depth, reload watches besides the modules that are imported.]:directory:_files -/' \
    '*--reload-include=[A pattern of further files that reload watches in the directories of reload_dirs\: '\''*.html'\''.]:value: ' \
    '*--reload-exclude=[A pattern of files and directories that reload does not watch.]:value: ' \
    '(--spew)--spew[Write every line of Python that runs to stderr. Very slow.]' \
    '(--check-config)--check-config[Check configuration and application, and exit\: 0 if they can be used, 1 if not.]' \
    '(--print-config)--print-config[Show each setting and where it comes from, what is set first, and check as --check-config.]' \
    ':application: '
