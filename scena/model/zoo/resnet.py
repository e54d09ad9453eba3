"""ResNet for ImageNet (He et al. 2016): basic blocks (18, 34) and bottlenecks (50 and up, as in keras.applications)."""

from collections.abc import Callable, Sequence

from scena.model.zoo.namespace import Layers, Options, Tensor

EPSILON = 1.001e-5
WIDTHS = (64, 128, 256, 512)
Block = Callable[[Layers, Tensor, int, int, bool], Tensor]


def basic(nn: Layers, x: Tensor, options: Options, blocks: Sequence[int]) -> Tensor:
    """Blocks of two convolutions without bias; a shortcut is a convolution only where the shape changes."""
    return _resnet(nn, x, options, blocks, _basic_block, bias=False)


def bottleneck(nn: Layers, x: Tensor, options: Options, blocks: Sequence[int]) -> Tensor:
    """Blocks of three convolutions with bias; the shortcut of each first block is a convolution."""
    return _resnet(nn, x, options, blocks, _bottleneck_block, bias=True)


def _resnet(nn: Layers, x: Tensor, options: Options, blocks: Sequence[int], block: Block, bias: bool) -> Tensor:
    x = nn.conv(nn.pad(x, 3), nn.channels(64), 7, 2, "valid", bias=bias)
    x = nn.activate(nn.batch_norm(x, EPSILON))
    x = nn.max_pool(nn.pad(x, 1), 3, 2)
    for stage, (width, number) in enumerate(zip(WIDTHS, options.blocks(blocks), strict=True)):
        for index in range(number):
            x = block(nn, x, width, 2 if stage and not index else 1, not index)
    return nn.classify(nn.global_pool(x), options.num_classes)


def _basic_block(nn: Layers, x: Tensor, width: int, strides: int, first: bool) -> Tensor:
    filters = nn.channels(width)
    shortcut = x
    if strides > 1 or nn.count(x) != filters:
        shortcut = nn.batch_norm(nn.conv(x, filters, 1, strides, "valid", bias=False), EPSILON)
    x = nn.pad(x, 1)
    x = nn.activate(nn.batch_norm(nn.conv(x, filters, 3, strides, "valid", bias=False), EPSILON))
    x = nn.batch_norm(nn.conv(x, filters, 3, bias=False), EPSILON)
    return nn.activate(nn.add([shortcut, x]))


def _bottleneck_block(nn: Layers, x: Tensor, width: int, strides: int, first: bool) -> Tensor:
    filters, wide = nn.channels(width), nn.channels(4 * width)
    shortcut = nn.batch_norm(nn.conv(x, wide, 1, strides, "valid"), EPSILON) if first else x
    x = nn.activate(nn.batch_norm(nn.conv(x, filters, 1, strides, "valid"), EPSILON))
    x = nn.activate(nn.batch_norm(nn.conv(x, filters, 3), EPSILON))
    x = nn.batch_norm(nn.conv(x, wide, 1, padding="valid"), EPSILON)
    return nn.activate(nn.add([shortcut, x]))
