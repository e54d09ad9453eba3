"""Checkpoints: the complete state of a training on disk, and resuming from it."""
