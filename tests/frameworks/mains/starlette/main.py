from starlette.applications import Starlette
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Route, WebSocketRoute


async def hello(request):
    return PlainTextResponse("Hello, starlette!")


async def lines():
    for number in range(3):
        yield f"line {number}\n"


async def stream(request):
    return StreamingResponse(lines())


async def echo(websocket):
    await websocket.accept()
    async for text in websocket.iter_text():
        await websocket.send_text(text)


app = Starlette(routes=[Route("/", hello), Route("/stream", stream), WebSocketRoute("/ws", echo)])
