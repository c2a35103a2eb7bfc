"""Opens due slots and keeps coverage."""
