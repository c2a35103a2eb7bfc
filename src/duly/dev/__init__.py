"""`duly dev`: everything in one process, with your schedules or a demo, to watch."""
