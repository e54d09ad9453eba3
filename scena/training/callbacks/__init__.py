"""What accompanies a training: progress, history, TensorBoard, the best model."""
