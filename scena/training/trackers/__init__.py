"""Trackers of other packages' services: a journal in the run's directory, and a process that sends it, each value exactly once."""
