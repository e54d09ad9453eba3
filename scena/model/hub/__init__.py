"""Feature extractors that come as a SavedModel: from TensorFlow Hub or from a folder. They need the TensorFlow backend."""
