"""Many runs: tables of them, sheets that describe them, searches over parameters, and what schedules their processes."""
