"""Optimizers and their parameters."""
