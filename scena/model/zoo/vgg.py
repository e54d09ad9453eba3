"""VGG16 (Simonyan and Zisserman 2015)."""

from scena.model.zoo.namespace import Layers, Options, Tensor

STAGES = ((2, 64), (2, 128), (3, 256), (3, 512), (3, 512))


def vgg16(nn: Layers, x: Tensor, options: Options) -> Tensor:
    """Thirteen convolutions of 3 × 3 and three dense layers."""
    rate = options.dropout_or(0.5)
    for convolutions, filters in STAGES:
        for _ in range(convolutions):
            x = nn.conv(x, nn.channels(filters), 3, activation="relu")
        x = nn.max_pool(x, 2, 2)
    x = nn.flatten(x)
    for _ in range(2):
        x = nn.dropout(nn.dense(x, nn.channels(4096), "relu"), rate)
    return nn.classify(x, options.num_classes)
