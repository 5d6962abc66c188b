"""Where the time of a running server goes, per route and worker, while it is sampled."""
