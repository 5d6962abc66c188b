"""`tricorn bench APP`: what an application does under each configuration and each server, measured and drawn.

Nothing of the server imports this package: it starts servers as a user would, by their command lines.
"""
