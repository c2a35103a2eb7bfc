"""What the core asks of the world, as protocols; adapters are chosen in `bootstrap` alone."""
