"""The JAX backend: compiled steps and devices."""
