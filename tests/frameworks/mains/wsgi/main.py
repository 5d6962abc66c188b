def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    if environ["PATH_INFO"] == "/stream":
        return (b"line %d\n" % number for number in range(3))
    return [b"Hello, wsgi!"]
