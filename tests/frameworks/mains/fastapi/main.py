from fastapi import FastAPI, WebSocket
from fastapi.responses import PlainTextResponse, StreamingResponse

app = FastAPI()


@app.get("/", response_class=PlainTextResponse)
def hello():
    return "Hello, fastapi!"


@app.get("/stream")
def stream():
    return StreamingResponse(f"line {number}\n" for number in range(3))


@app.websocket("/ws")
async def echo(websocket: WebSocket):
    await websocket.accept()
    async for text in websocket.iter_text():
        await websocket.send_text(text)
