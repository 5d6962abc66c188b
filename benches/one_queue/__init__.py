"""Is it one queue? Measured waits beside those that queueing theory gives for the same requests."""
