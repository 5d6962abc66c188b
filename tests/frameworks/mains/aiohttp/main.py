from aiohttp import web

routes = web.RouteTableDef()


@routes.get("/")
async def hello(request):
    return web.Response(text="Hello, aiohttp!")


@routes.get("/stream")
async def stream(request):
    response = web.StreamResponse()
    await response.prepare(request)
    for number in range(3):
        await response.write(b"line %d\n" % number)
    return response


@routes.get("/ws")
async def echo(request):
    socket = web.WebSocketResponse()
    await socket.prepare(request)
    async for message in socket:
        await socket.send_str(message.data)
    return socket


app = web.Application()
app.add_routes(routes)
