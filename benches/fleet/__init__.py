"""A thousand hosts in virtual time: how long requests wait, and which metric to scale on."""
