from quart import Quart, websocket

app = Quart(__name__)


@app.get("/")
async def hello():
    return "Hello, quart!"


async def lines():
    for number in range(3):
        yield f"line {number}\n"


@app.get("/stream")
async def stream():
    return lines(), {"Content-Type": "text/plain"}


@app.websocket("/ws")
async def echo():
    while True:
        await websocket.send(await websocket.receive())
