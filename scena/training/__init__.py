"""Training: the trainer, its loop, checkpoints, optimizers, schedules and callbacks."""
