from flask import Flask, stream_with_context

app = Flask(__name__)


@app.get("/")
def hello():
    return "Hello, flask!"


@app.get("/stream")
def stream():
    return stream_with_context(f"line {number}\n" for number in range(3)), {"Content-Type": "text/plain"}
