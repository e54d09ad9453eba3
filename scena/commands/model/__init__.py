"""Commands for trained models: lav, evaluate-dump, predict, export, adapt, serve, import-checkpoint."""
