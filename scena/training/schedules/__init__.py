"""Learning-rate schedules and their parameters."""
