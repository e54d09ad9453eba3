"""IResNet, the improved ResNet of ArcFace (Deng et al. 2019) for faces of 112 × 112; its output is an embedding."""

from collections.abc import Sequence

from scena.model.zoo.namespace import CLASSIFIER, Layers, Options, Tensor

EPSILON = 1e-5
MOMENTUM = 0.9
WIDTHS = (64, 128, 256, 512)
FEATURES = 512


def iresnet(nn: Layers, x: Tensor, options: Options, blocks: Sequence[int]) -> Tensor:
    """Four stages that each halve the image, and an embedding; with classes, a dense layer on top of it."""
    x = nn.prelu(_normalise(nn, nn.conv(x, nn.channels(64), 3, bias=False)))
    for width, number in zip(WIDTHS, options.blocks(blocks), strict=True):
        for index in range(number):
            x = _block(nn, x, nn.channels(width), 1 if index else 2)
    x = nn.dropout(_normalise(nn, x), options.dropout_or(0.0))
    x = nn.embed(nn.flatten(x), options.embedding or FEATURES, EPSILON)
    return nn.real.dense(x, options.num_classes, name=CLASSIFIER) if options.num_classes else x


def _block(nn: Layers, x: Tensor, filters: int, strides: int) -> Tensor:
    shortcut = x
    if strides > 1 or nn.count(x) != filters:
        shortcut = _normalise(nn, nn.conv(x, filters, 1, strides, "valid", bias=False))
    x = nn.conv(_normalise(nn, x), filters, 3, bias=False)
    x = nn.prelu(_normalise(nn, x))
    x = nn.conv(nn.pad(x, 1), filters, 3, strides, "valid", bias=False)
    return nn.add([shortcut, _normalise(nn, x)])


def _normalise(nn: Layers, x: Tensor) -> Tensor:
    return nn.batch_norm(x, EPSILON, MOMENTUM)
