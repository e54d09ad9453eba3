"""MobileNetV2 (Sandler et al. 2018): inverted residuals with linear bottlenecks."""

from scena.model.zoo.namespace import Layers, Options, Tensor, make_divisible

# (expansion, channels, stride of the first block); the blocks of each stage can be set
STAGES = ((1, 16, 1), (6, 24, 2), (6, 32, 2), (6, 64, 2), (6, 96, 1), (6, 160, 2), (6, 320, 1))
BLOCKS = (1, 2, 3, 4, 3, 3, 1)


def mobilenet_v2(nn: Layers, x: Tensor, options: Options, small_images: bool = False) -> Tensor:
    """Seven stages between two convolutions; for small images the first two strides are 1."""
    x = nn.conv(x, _width(nn, 32), 3, 1 if small_images else 2, bias=False)
    x = nn.activate(_normalise(nn, x), "relu6")
    for stage, ((expansion, channels, strides), number) in enumerate(zip(STAGES, options.blocks(BLOCKS), strict=True)):
        for index in range(number):
            first_strides = 1 if small_images and stage == 1 else strides
            x = _block(nn, x, expansion, _width(nn, channels), 1 if index else first_strides)
    x = nn.activate(_normalise(nn, nn.conv(x, _width(nn, 1280), 1, bias=False)), "relu6")
    x = nn.dropout(nn.global_pool(x), options.dropout_or(0.0))
    return nn.classify(x, options.num_classes)


def _block(nn: Layers, x: Tensor, expansion: int, channels: int, strides: int) -> Tensor:
    inputs, before = x, nn.count(x)
    if expansion > 1:
        x = nn.activate(_normalise(nn, nn.conv(x, expansion * before, 1, bias=False)), "relu6")
    if strides == 2:
        x = nn.depthwise(nn.pad_for_stride(x, 3), 3, 2, "valid")
    else:
        x = nn.depthwise(x, 3)
    x = nn.activate(_normalise(nn, x), "relu6")
    x = _normalise(nn, nn.conv(x, channels, 1, bias=False))
    return nn.add([inputs, x]) if strides == 1 and before == channels else x


def _width(nn: Layers, channels: int) -> int:
    return make_divisible(channels / nn.setting.factor)


def _normalise(nn: Layers, x: Tensor) -> Tensor:
    return nn.batch_norm(x, epsilon=1e-3, momentum=0.999)
