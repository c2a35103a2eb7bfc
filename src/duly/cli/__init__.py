"""What the `duly` command prints: for people, or as JSON for programs."""
