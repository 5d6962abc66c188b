"""The control socket: clients query a running server, ask its workers, and change it, without signals.

    bound_socket  binds the path             session     framing: bytes in, requests out (pure)
    listener      accepts; keeps the limits  gunicorn    translates gunicornc's commands (pure)
    dispatcher    who answers a request      commands    the table of words (pure)
    report        queries                    inquiries   questions to workers; `stacks` reads their answers
    waits         answers given later        events      for clients that follow

The arbiter's loop polls the socket and its clients beside the pipes of the workers. It never waits for a client: a turn
reads one piece, answers one request, and writes what the socket takes, for each of at most `MOST_CLIENTS`.
"""
