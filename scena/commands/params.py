"""`scena params …`: placeholder until the printing functions of scena.params are there."""
