"""A scenario whose model counts which samples it was trained on, and when: `tests/reliability/checker.py` compares that with the seed."""
