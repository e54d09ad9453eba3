"""A package that extends Scena."""
