"""Scenarios: what holds data, model and training together, and how they are found and stored."""
