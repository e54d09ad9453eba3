"""Wide residual networks (Zagoruyko and Komodakis 2016): few, wide blocks that normalise before they convolve."""

from collections.abc import Sequence

from scena.model.zoo.namespace import Layers, Options, Tensor


def wide_resnet(nn: Layers, x: Tensor, options: Options, blocks: Sequence[int], width: int) -> Tensor:
    """Three stages; dropout, if wanted, stands between the two convolutions of a block."""
    rate = options.dropout_or(0.0)
    x = nn.conv(x, nn.channels(16), 3, bias=False)
    for stage, number in enumerate(options.blocks(blocks)):
        filters = nn.channels(16 * 2**stage * width)
        for index in range(number):
            x = _block(nn, x, filters, 2 if stage and not index else 1, rate)
    x = _normalise(nn, x)
    return nn.classify(nn.global_pool(x), options.num_classes)


def _block(nn: Layers, x: Tensor, filters: int, strides: int, rate: float) -> Tensor:
    normal = _normalise(nn, x)
    shortcut = x
    if strides > 1 or nn.count(x) != filters:
        shortcut = nn.conv(normal, filters, 1, strides, "valid", bias=False)
    x = nn.conv(nn.pad(normal, 1), filters, 3, strides, "valid", bias=False)
    x = nn.dropout(_normalise(nn, x), rate)
    return nn.add([shortcut, nn.conv(x, filters, 3, bias=False)])


def _normalise(nn: Layers, x: Tensor) -> Tensor:
    return nn.activate(nn.batch_norm(x, epsilon=1e-5, momentum=0.9))
