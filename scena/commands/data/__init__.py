"""Commands for data: records, benchmark-input, data-service."""
