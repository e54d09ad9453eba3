"""State of layers and variables: read, written and put back, in memory and in files."""
