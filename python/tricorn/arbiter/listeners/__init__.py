"""The arbiter's listening sockets.

sockets       listeners of all addresses: opened, inherited, compared, closed
reuse_port    `--reuse-port`: the same for workers that listen with sockets of their own
port_holder   the process that has a TCP port, for the error message
"""
