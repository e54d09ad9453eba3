"""Sheets of runs: reading them, carrying them out, and writing results back."""
