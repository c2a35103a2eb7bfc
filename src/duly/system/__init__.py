"""The operating system, the clocks and the dice."""
