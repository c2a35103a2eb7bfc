"""`Duly()`: jobs and schedules declared in Python, and the program that runs them."""
