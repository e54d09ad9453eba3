"""ResNet for small pictures (He et al. 2016, section 4.2): three stages, shortcuts without parameters (option A)."""

from collections.abc import Sequence

from scena.model.zoo.namespace import Layers, Tensor
from scena.model.zoo.options import Options

WIDTHS = (16, 32, 64)


def resnet_cifar(nn: Layers, x: Tensor, options: Options, blocks: Sequence[int]) -> Tensor:
    """Blocks of two convolutions without bias; where a stage begins, the shortcut skips pixels and gets channels of zeros."""
    x = nn.activate(_normalise(nn, nn.conv(x, nn.channels(WIDTHS[0]), 3, bias=False)))
    for stage, (width, number) in enumerate(zip(WIDTHS, options.blocks(blocks), strict=True)):
        for index in range(number):
            x = _block(nn, x, nn.channels(width), 2 if stage and not index else 1)
    return nn.classify(nn.global_pool(x), options.num_classes)


def _block(nn: Layers, x: Tensor, filters: int, strides: int) -> Tensor:
    shortcut = x
    if strides > 1:
        shortcut = nn.max_pool(shortcut, 1, strides)
    if nn.count(x) != filters:
        shortcut = nn.pad_channels(shortcut, filters)
    x = nn.pad(x, 1)
    x = nn.activate(_normalise(nn, nn.conv(x, filters, 3, strides, "valid", bias=False)))
    x = _normalise(nn, nn.conv(x, filters, 3, bias=False))
    return nn.activate(nn.add([shortcut, x]))


def _normalise(nn: Layers, x: Tensor) -> Tensor:
    # small data sets have few steps in an epoch: the moving statistics must follow soon
    return nn.batch_norm(x, epsilon=1e-5, momentum=0.9)
