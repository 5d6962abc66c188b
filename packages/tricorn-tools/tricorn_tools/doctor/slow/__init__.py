"""Why the slow requests of a route were slow: what they did that the usual ones did not."""
