"""AlexNet: with one tower (Krizhevsky 2014, "One weird trick for parallelizing convolutional neural networks") and as of 2012."""

from scena.model.zoo.namespace import Layers, Options, Tensor


def alexnet(nn: Layers, x: Tensor, options: Options) -> Tensor:
    """Five convolutions, three of them with pooling, and three dense layers."""
    x = nn.conv(nn.pad(x, 2), nn.channels(64), 11, 4, "valid", activation="relu")
    x = nn.max_pool(x, 3, 2)
    x = nn.conv(x, nn.channels(192), 5, activation="relu")
    x = nn.max_pool(x, 3, 2)
    for filters in (384, 256, 256):
        x = nn.conv(x, nn.channels(filters), 3, activation="relu")
    return _classify(nn, x, options)


def alexnet_2012(nn: Layers, x: Tensor, options: Options, towers: int = 2, bias: bool = True) -> Tensor:
    """The widths of 2012. Two towers see each other's channels only in the third convolution and in the dense layers.

    Args:
        towers: 2, or 1 for convolutions that see all channels.
        bias: whether layers other than the classifier have one.
    """

    def conv(inputs: list[Tensor], filters: int, kernel: int, strides: int = 1, padding: str = "same") -> list[Tensor]:
        width = nn.channels(filters / towers)
        return [nn.conv(one, width, kernel, strides, padding, bias, activation="relu") for one in inputs]

    def pool(inputs: list[Tensor]) -> list[Tensor]:
        return [nn.max_pool(one, 3, 2) for one in inputs]

    def joined(inputs: list[Tensor]) -> Tensor:
        return nn.concat(inputs) if towers > 1 else inputs[0]

    maps = pool(conv([nn.pad(x, 2)] * towers, 96, 11, 4, "valid"))
    maps = pool(conv(maps, 256, 5))
    maps = conv([joined(maps)] * towers, 384, 3)
    maps = conv(conv(maps, 384, 3), 256, 3)
    return _classify(nn, joined(maps), options, bias)


def _classify(nn: Layers, x: Tensor, options: Options, bias: bool = True) -> Tensor:
    rate = options.dropout_or(0.5)
    x = nn.flatten(nn.max_pool(x, 3, 2))
    for _ in range(2):
        x = nn.dense(nn.dropout(x, rate), nn.channels(4096), "relu", bias=bias)
    return nn.classify(x, options.num_classes)
