"""Losses and metrics of a model: finding their values, and noticing those that would measure something else than meant."""
