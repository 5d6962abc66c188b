"""The control socket: a running server is asked and told over it, without signals.

    place      where the socket is                     session   bytes in, requests out; two framings (pure)
    listener   accepts, and knows the limits           words     what a request asks for (pure)
    report     what is known, as JSON has it           desk      answers, or asks the policy

The arbiter's loop polls the socket and its clients beside the pipes of the workers. It never waits for a client: a turn
reads one piece, answers one request, and writes what the socket takes, for each of at most `MOST_CLIENTS`.
"""
