"""Commands for results: runs."""
