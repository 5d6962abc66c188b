"""The classical measurements: Flask, aiohttp, tornado and sanic applications under every server, for many users."""
