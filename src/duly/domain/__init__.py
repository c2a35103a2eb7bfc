"""What is true, due and allowed: standard library only, no I/O, no clock, no dice."""
