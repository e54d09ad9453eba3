"""What depends on the Keras backend or on devices: engines, device selection, clusters."""
