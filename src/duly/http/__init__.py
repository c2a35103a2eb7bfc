"""The HTTP API: routes, a file per noun, over the same use cases as every other front door."""
