"""Searches over parameters: space, study, trials and plots."""
