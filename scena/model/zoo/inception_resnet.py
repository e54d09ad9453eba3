"""Inception-ResNet v2 (Szegedy et al. 2017), with a bottleneck for faces if wanted."""

from collections.abc import Sequence

from scena.model.zoo.namespace import CLASSIFIER, Layers, Options, Tensor

Step = tuple[int, int | tuple[int, int]]
"""Channels and kernel of one convolution."""

# (branches of a block, how often, how much of it is added)
BLOCKS_35: Sequence[Sequence[Step]] = ([(32, 1)], [(32, 1), (32, 3)], [(32, 1), (48, 3), (64, 3)])
BLOCKS_17: Sequence[Sequence[Step]] = ([(192, 1)], [(128, 1), (160, (1, 7)), (192, (7, 1))])
BLOCKS_8: Sequence[Sequence[Step]] = ([(192, 1)], [(192, 1), (224, (1, 3)), (256, (3, 1))])


def inception_resnet_v2(nn: Layers, x: Tensor, options: Options, default_embedding: int | None = None) -> Tensor:
    """Stem, three kinds of residual inception blocks with reductions between them, and the classifier."""
    x = _stem(nn, x)
    for _ in range(10):
        x = _block(nn, x, BLOCKS_35, 0.17)
    x = _reduce(nn, x, [[(384, 3)], [(256, 1), (256, 3), (384, 3)]])
    for _ in range(20):
        x = _block(nn, x, BLOCKS_17, 0.1)
    x = _reduce(nn, x, [[(256, 1), (384, 3)], [(256, 1), (288, 3)], [(256, 1), (288, 3), (320, 3)]])
    for _ in range(9):
        x = _block(nn, x, BLOCKS_8, 0.2)
    x = _block(nn, x, BLOCKS_8, 1.0, activate=False)
    x = nn.dropout(nn.global_pool(_conv(nn, x, 1536, 1)), options.dropout_or(0.2))
    features = options.embedding or default_embedding
    if not features:
        return nn.classify(x, options.num_classes)
    x = nn.embed(x, features, 1e-3)
    return nn.real.dense(x, options.num_classes, name=CLASSIFIER) if options.num_classes else x


def _stem(nn: Layers, x: Tensor) -> Tensor:
    x = _conv(nn, x, 32, 3, 2, "valid")
    x = _conv(nn, x, 32, 3, padding="valid")
    x = nn.max_pool(_conv(nn, x, 64, 3), 3, 2)
    x = _conv(nn, x, 80, 1, padding="valid")
    x = nn.max_pool(_conv(nn, x, 192, 3, padding="valid"), 3, 2)
    branches = [_branch(nn, x, steps) for steps in ([(96, 1)], [(48, 1), (64, 5)], [(64, 1), (96, 3), (96, 3)])]
    return nn.concat([*branches, _conv(nn, nn.avg_pool(x, 3, 1, "same"), 64, 1)])


def _block(nn: Layers, x: Tensor, branches: Sequence[Sequence[Step]], share: float, activate: bool = True) -> Tensor:
    """Adds a share of the concatenated branches to the input."""
    mixed = nn.concat([_branch(nn, x, steps) for steps in branches])
    x = nn.add([x, nn.scale(nn.conv(mixed, nn.count(x), 1), share)])
    return nn.activate(x) if activate else x


def _reduce(nn: Layers, x: Tensor, branches: Sequence[Sequence[Step]]) -> Tensor:
    """Branches whose last convolution has stride 2, and a pooling."""
    outputs = []
    for steps in branches:
        inside = _branch(nn, x, steps[:-1])
        filters, kernel = steps[-1]
        outputs.append(_conv(nn, inside, filters, kernel, 2, "valid"))
    return nn.concat([*outputs, nn.max_pool(x, 3, 2)])


def _branch(nn: Layers, x: Tensor, steps: Sequence[Step]) -> Tensor:
    for filters, kernel in steps:
        x = _conv(nn, x, filters, kernel)
    return x


def _conv(
    nn: Layers, x: Tensor, filters: int, kernel: int | tuple[int, int], strides: int = 1, padding: str = "same"
) -> Tensor:
    x = nn.conv(x, nn.channels(filters), kernel, strides, padding, bias=False)
    return nn.activate(nn.batch_norm(x, scale=False))
