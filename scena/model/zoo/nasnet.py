"""NASNet-A (Zoph et al. 2018): cells that a search found. A cell sees the outputs of the two cells before it."""

from scena.model.zoo.namespace import Layers, Options, Tensor

SMALLER = ((0, 1), (0, 1))
SHIFTED = ((1, 0), (1, 0))


def nasnet(
    nn: Layers,
    x: Tensor,
    options: Options,
    penultimate: int,
    blocks: int,
    stem: int,
    skip_reduction: bool = False,
    small_images: bool = False,
) -> Tensor:
    """Three stages of normal cells with reduction cells between them.

    Args:
        penultimate: channels at the end, at factor 1.
        blocks: normal cells of a stage.
        stem: channels of the first convolution.
        skip_reduction: the cell after a reduction sees the input of the cell before the reduction, not that of the reduction.
        small_images: no reduction before the first stage.
    """
    filters = penultimate // 24
    strides, padding = (1, "same") if small_images else (2, "valid")
    x = _normalise(nn, nn.conv(x, nn.channels(stem), 3, strides, padding, bias=False))
    before = None
    if not small_images:
        x, before = _reduction_cell(nn, x, before, nn.channels(filters // 4))
        x, before = _reduction_cell(nn, x, before, nn.channels(filters // 2))
    for stage in range(3):
        width = nn.channels(filters * 2**stage)
        if stage:
            x, skipped = _reduction_cell(nn, x, before, width)
            before = before if skip_reduction else skipped
        for _ in range(blocks):
            x, before = _normal_cell(nn, x, before, width)
    x = nn.global_pool(nn.activate(x))
    return nn.classify(x, options.num_classes)


def _normal_cell(nn: Layers, x: Tensor, before: Tensor | None, filters: int) -> tuple[Tensor, Tensor]:
    """The output of a cell, and its input for the cell after the next."""
    p = _fit(nn, before, x, filters)
    h = _normalise(nn, nn.conv(nn.activate(x), filters, 1, bias=False))
    outputs = [
        p,
        nn.add([_separable(nn, h, filters, 5), _separable(nn, p, filters, 3)]),
        nn.add([_separable(nn, p, filters, 5), _separable(nn, p, filters, 3)]),
        nn.add([nn.avg_pool(h, 3, 1, "same"), p]),
        nn.add([nn.avg_pool(p, 3, 1, "same"), nn.avg_pool(p, 3, 1, "same")]),
        nn.add([_separable(nn, h, filters, 3), h]),
    ]
    return nn.concat(outputs), x


def _reduction_cell(nn: Layers, x: Tensor, before: Tensor | None, filters: int) -> tuple[Tensor, Tensor]:
    """The same for a cell that halves height and width."""
    p = _fit(nn, before, x, filters)
    h = _normalise(nn, nn.conv(nn.activate(x), filters, 1, bias=False))
    padded = nn.pad_for_stride(h, 3)
    first = nn.add([_separable(nn, h, filters, 5, 2), _separable(nn, p, filters, 7, 2)])
    second = nn.add([nn.max_pool(padded, 3, 2), _separable(nn, p, filters, 7, 2)])
    third = nn.add([nn.avg_pool(padded, 3, 2), _separable(nn, p, filters, 5, 2)])
    fourth = nn.add([second, nn.avg_pool(first, 3, 1, "same")])
    fifth = nn.add([_separable(nn, first, filters, 3), nn.max_pool(padded, 3, 2)])
    return nn.concat([second, third, fourth, fifth]), x


def _fit(nn: Layers, before: Tensor | None, x: Tensor, filters: int) -> Tensor:
    """Brings the older input to the size of the newer one, and to the channels of the cell."""
    if before is None:
        return x
    if nn.size(before) != nn.size(x):
        before = nn.activate(before)
        left = nn.conv(nn.avg_pool(before, 1, 2), max(1, filters // 2), 1, bias=False)
        if filters == 1:
            return _normalise(nn, left)
        shifted = nn.crop(nn.pad(before, SMALLER), SHIFTED)
        right = nn.conv(nn.avg_pool(shifted, 1, 2), filters - filters // 2, 1, bias=False)
        return _normalise(nn, nn.concat([left, right]))
    if nn.count(before) != filters:
        return _normalise(nn, nn.conv(nn.activate(before), filters, 1, bias=False))
    return before


def _separable(nn: Layers, x: Tensor, filters: int, kernel: int, strides: int = 1) -> Tensor:
    """ReLU, separable convolution and batch normalisation, twice."""
    x = nn.activate(x)
    if strides == 2:
        x = nn.separable(nn.pad_for_stride(x, kernel), filters, kernel, 2, "valid")
    else:
        x = nn.separable(x, filters, kernel)
    x = nn.activate(_normalise(nn, x))
    return _normalise(nn, nn.separable(x, filters, kernel))


def _normalise(nn: Layers, x: Tensor) -> Tensor:
    return nn.batch_norm(x, epsilon=1e-3, momentum=0.9997)
