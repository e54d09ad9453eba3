"""ResNet for small images (He et al. 2016, section 4.2): three stages, and three kinds of shortcuts where a stage begins."""

from collections.abc import Sequence

from scena.model.zoo.namespace import Layers, Options, Tensor

WIDTHS = (16, 32, 64)


def resnet_cifar(nn: Layers, x: Tensor, options: Options, blocks: Sequence[int], projection: bool = False) -> Tensor:
    """Blocks of two convolutions without bias.

    Args:
        blocks: blocks of each stage.
        projection: where a stage begins, the shortcut is a convolution of 1 × 1 (option B of the paper); otherwise it skips
            pixels and gets channels of zeros (option A).
    """
    x = nn.activate(_normalise(nn, nn.conv(x, nn.channels(WIDTHS[0]), 3, bias=False)))
    for stage, (width, number) in enumerate(zip(WIDTHS, options.blocks(blocks), strict=True)):
        for index in range(number):
            x = _block(nn, x, nn.channels(width), 2 if stage and not index else 1, projection)
    return nn.classify(nn.global_pool(x), options.num_classes)


def _block(nn: Layers, x: Tensor, filters: int, strides: int, projection: bool) -> Tensor:
    shortcut = x
    if projection and strides > 1:
        shortcut = _normalise(nn, nn.conv(x, filters, 1, strides, "valid", bias=False))
    else:
        if strides > 1:
            shortcut = nn.max_pool(shortcut, 1, strides)
        if nn.count(x) != filters:
            shortcut = nn.pad_channels(shortcut, filters)
    x = nn.pad(x, 1)
    x = nn.activate(_normalise(nn, nn.conv(x, filters, 3, strides, "valid", bias=False)))
    x = _normalise(nn, nn.conv(x, filters, 3, bias=False))
    return nn.activate(nn.add([shortcut, x]))


def resnet_cifar_v2(nn: Layers, x: Tensor, options: Options, blocks: Sequence[int]) -> Tensor:
    """As in classification-api: blocks normalise first; the first convolution and the projections, of 3 × 3, have biases."""
    x = nn.conv(x, nn.channels(WIDTHS[0]), 3)
    for stage, (width, number) in enumerate(zip(WIDTHS, options.blocks(blocks), strict=True)):
        for index in range(number):
            x = _block_v2(nn, x, nn.channels(width), 2 if stage and not index else 1)
    x = nn.activate(_normalise(nn, x))
    return nn.classify(nn.global_pool(x), options.num_classes)


def _block_v2(nn: Layers, x: Tensor, filters: int, strides: int) -> Tensor:
    shortcut = nn.conv(nn.pad(x, 1), filters, 3, strides, "valid") if strides > 1 else x
    x = nn.pad(nn.activate(_normalise(nn, x)), 1)
    x = nn.activate(_normalise(nn, nn.conv(x, filters, 3, strides, "valid", bias=False)))
    return nn.add([shortcut, nn.conv(x, filters, 3, bias=False)])


def _normalise(nn: Layers, x: Tensor) -> Tensor:
    # small data sets have few steps in an epoch: the moving statistics must follow soon
    return nn.batch_norm(x, epsilon=1e-5, momentum=0.9)
