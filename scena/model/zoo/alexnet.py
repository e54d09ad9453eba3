"""AlexNet with one tower (Krizhevsky 2014, "One weird trick for parallelizing convolutional neural networks")."""

from scena.model.zoo.namespace import Layers, Tensor
from scena.model.zoo.options import Options


def alexnet(nn: Layers, x: Tensor, options: Options) -> Tensor:
    """Five convolutions, three of them with pooling, and three dense layers."""
    rate = options.dropout_or(0.5)
    x = nn.conv(nn.pad(x, 2), nn.channels(64), 11, 4, "valid", activation="relu")
    x = nn.max_pool(x, 3, 2)
    x = nn.conv(x, nn.channels(192), 5, activation="relu")
    x = nn.max_pool(x, 3, 2)
    for filters in (384, 256, 256):
        x = nn.conv(x, nn.channels(filters), 3, activation="relu")
    x = nn.flatten(nn.max_pool(x, 3, 2))
    for _ in range(2):
        x = nn.dense(nn.dropout(x, rate), nn.channels(4096), "relu")
    return nn.classify(x, options.num_classes)
