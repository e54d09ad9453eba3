"""Parameter files: reading and writing YAML and JSON, named sets, and the schema for editors."""
