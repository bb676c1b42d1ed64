"""What runs: executables, the watch on their times, timelines."""
