"""The worker classes: the ways a worker can wait. `registry` knows their names."""
