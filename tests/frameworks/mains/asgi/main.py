async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        raise RuntimeError("as a callable without a lifespan does")
    if scope["type"] == "websocket":
        return await echo(receive, send)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
    if scope["path"] == "/stream":
        for number in range(3):
            await send({"type": "http.response.body", "body": b"line %d\n" % number, "more_body": True})
        return await send({"type": "http.response.body"})
    return await send({"type": "http.response.body", "body": b"Hello, asgi!"})


async def echo(receive, send):
    await receive()
    await send({"type": "websocket.accept"})
    while (message := await receive())["type"] == "websocket.receive":
        await send({"type": "websocket.send", "text": message["text"]})
