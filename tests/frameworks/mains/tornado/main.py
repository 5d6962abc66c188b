from tornado import web, websocket


class Hello(web.RequestHandler):
    def get(self):
        self.write("Hello, tornado!")


class Stream(web.RequestHandler):
    async def get(self):
        for number in range(3):
            self.write(f"line {number}\n")
            await self.flush()


class Echo(websocket.WebSocketHandler):
    def on_message(self, message):
        return self.write_message(message)


app = web.Application([("/", Hello), ("/stream", Stream), ("/ws", Echo)])
