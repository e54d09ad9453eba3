"""Load and validate (LAV), and evaluators in plain Python."""
