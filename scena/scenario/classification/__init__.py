"""Image classification, ready to use: `scena train classification --model.name MobileNetV2 --data.dataset cifar10`."""

from scena.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
