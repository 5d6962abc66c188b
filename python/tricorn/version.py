"""The version of tricorn and of its distributions."""

__version__ = "0.1.0"
