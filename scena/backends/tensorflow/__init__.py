"""The TensorFlow backend: compiled steps, replicas, distribution, and its checkpoints."""
