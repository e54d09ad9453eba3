"""Everything in `scena.data` that needs TensorFlow; imported when it is used."""
