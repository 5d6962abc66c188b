"""Combinations: what holds alone is tried together, at random, and the books are balanced afterwards.

A storm is a server under load and three to five kinds of weather at once, all of it drawn from a seed. `make storms`
makes new ones for as long as it is told to; a few with fixed seeds are tests.
"""
