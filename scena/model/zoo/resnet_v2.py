"""ResNet V2 (He et al. 2016, "Identity mappings in deep residual networks"), as in keras.applications: blocks normalise first."""

from collections.abc import Sequence

from scena.model.zoo.namespace import Layers, Options, Tensor
from scena.model.zoo.resnet import EPSILON, WIDTHS


def bottleneck_v2(nn: Layers, x: Tensor, options: Options, blocks: Sequence[int]) -> Tensor:
    """Four stages of bottlenecks. The first block of a stage projects, the last one of the first three halves the image."""
    x = nn.conv(nn.pad(x, 3), nn.channels(64), 7, 2, "valid")
    x = nn.max_pool(nn.pad(x, 1), 3, 2)
    for stage, (width, number) in enumerate(zip(WIDTHS, options.blocks(blocks), strict=True)):
        for index in range(number):
            halves = index == number - 1 and stage < len(WIDTHS) - 1
            x = _block(nn, x, width, 2 if halves else 1, projects=index == 0)
    return nn.classify(nn.global_pool(_normalise(nn, x)), options.num_classes)


def _block(nn: Layers, x: Tensor, width: int, strides: int, projects: bool) -> Tensor:
    filters, wide = nn.channels(width), nn.channels(4 * width)
    normal = _normalise(nn, x)
    if projects:
        shortcut = nn.conv(normal, wide, 1, strides, "valid")
    else:
        shortcut = nn.max_pool(x, 1, strides) if strides > 1 else x
    x = _normalise(nn, nn.conv(normal, filters, 1, padding="valid", bias=False))
    x = _normalise(nn, nn.conv(nn.pad(x, 1), filters, 3, strides, "valid", bias=False))
    return nn.add([shortcut, nn.conv(x, wide, 1, padding="valid")])


def _normalise(nn: Layers, x: Tensor) -> Tensor:
    return nn.activate(nn.batch_norm(x, EPSILON))
