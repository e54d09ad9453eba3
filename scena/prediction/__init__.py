"""Predicting with trained models, voting, and writing exports."""
