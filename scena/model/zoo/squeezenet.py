"""SqueezeNet 1.1 (Iandola et al. 2016; 1.1 is the authors' later release: the same accuracy with fewer operations)."""

from scena.model.zoo.namespace import Layers, Options, Tensor

FIRES = ((16, 64), (16, 64)), ((32, 128), (32, 128)), ((48, 192), (48, 192), (64, 256), (64, 256))


def squeezenet(nn: Layers, x: Tensor, options: Options) -> Tensor:
    """Fire modules between poolings; the classifier is a convolution whose map is averaged."""
    x = nn.conv(x, nn.channels(64), 3, 2, "valid", activation="relu")
    for stage in FIRES:
        x = nn.max_pool(x, 3, 2)
        for squeeze, expand in stage:
            x = _fire(nn, x, nn.channels(squeeze), nn.channels(expand))
    x = nn.dropout(x, options.dropout_or(0.5))
    x = nn.classify_map(x, options.num_classes)
    if options.num_classes:
        x = nn.activate(x)
    return nn.real.global_pool(x)


def _fire(nn: Layers, x: Tensor, squeeze: int, expand: int) -> Tensor:
    x = nn.conv(x, squeeze, 1, activation="relu")
    return nn.concat([nn.conv(x, expand, 1, activation="relu"), nn.conv(x, expand, 3, activation="relu")])
