"""Claims jobs and runs their handlers; knows no graph code and no schedule control."""
