"""How fast is a request, and what does it cost? tricorn beside its peers, over sockets, in one run."""
