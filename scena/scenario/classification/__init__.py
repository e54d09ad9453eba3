"""Image classification, ready to use: `scena train classification --model.name MobileNetV2 --data.dataset cifar10`."""
