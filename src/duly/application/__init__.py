"""Use cases: each decides and saves in one transaction."""
