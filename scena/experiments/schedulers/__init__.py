"""What runs processes: slots on this machine, or a Ray cluster."""
