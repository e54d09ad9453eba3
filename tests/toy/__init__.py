"""A scenario that trains in milliseconds: which of two halves of eight numbers has the larger sum."""
