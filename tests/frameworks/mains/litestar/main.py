from litestar import Litestar, MediaType, get, websocket_listener
from litestar.response import Stream


@get("/", media_type=MediaType.TEXT)
async def hello() -> str:
    return "Hello, litestar!"


async def lines():
    for number in range(3):
        yield f"line {number}\n"


@get("/stream")
async def stream() -> Stream:
    return Stream(lines(), media_type="text/plain")


@websocket_listener("/ws")
async def echo(data: str) -> str:
    return data


app = Litestar([hello, stream, echo])
