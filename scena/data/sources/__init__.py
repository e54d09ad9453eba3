"""Ready-made generators: list files, rows of CSV/TSV files, arrays."""
