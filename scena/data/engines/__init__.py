"""Who runs the stages of a pipeline: this process, or worker processes. Engines import stages, never the reverse."""
