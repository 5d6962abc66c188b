"""Asking a running server over its control socket: the client, and where both sides look for the socket.

`socket_path` names the directories, `client` connects and asks. The server's side is `tricorn.arbiter.control`.
"""
