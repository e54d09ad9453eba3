"""Choosing what to compute on."""
