"""`tricorn top`: what a running server is doing, read from its pages and asked from its control socket.

look (one reading) → change (between two of them) → table (rows, cells) → screen (lines of a size) or as_json. These are
pure, as is `keys` (what a key means). The terminal is `terminal.py`'s, the server is `source.py`'s, and `loop.py` lets
them meet.
"""
