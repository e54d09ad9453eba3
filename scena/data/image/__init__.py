"""Images: finding and reading them, preparing them for records, and augmentations that run in Python and in tf.data."""
