"""Image classification: a folder of photographs for each class, and a small convolutional network."""
