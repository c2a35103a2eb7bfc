"""Which Duly this is: for every layer to know, so it imports none."""

__version__ = "0.1.0"
