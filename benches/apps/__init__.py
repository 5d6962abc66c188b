"""The applications that are measured, one for each interface, by path. Each is the plainest way to write it."""
