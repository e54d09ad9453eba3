"""What runs an exported model for a prediction: Keras, or what a plugin brings."""
