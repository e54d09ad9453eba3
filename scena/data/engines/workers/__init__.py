"""Worker processes that build whole batches in shared memory. Not public; see docs/pipeline.md."""
