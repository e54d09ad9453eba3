"""Commands that train: train, resume, launch, lr-find, tune, experiment."""
