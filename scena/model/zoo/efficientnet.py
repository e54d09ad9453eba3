"""EfficientNet B0 to B7 (Tan and Le 2019): one network, scaled in width, depth and size of the image.

There is no normalisation of the image inside, as keras.applications has it: images come normalised.
"""

import math
from typing import NamedTuple

from scena.model.zoo.namespace import Layers, Options, Tensor, make_divisible


class Stage(NamedTuple):
    """Some inverted residuals of the same kind."""

    kernel: int
    repeats: int
    channels: int
    expansion: int
    strides: int


STAGES = (
    Stage(3, 1, 16, 1, 1),
    Stage(3, 2, 24, 6, 2),
    Stage(5, 2, 40, 6, 2),
    Stage(3, 3, 80, 6, 2),
    Stage(5, 3, 112, 6, 1),
    Stage(5, 4, 192, 6, 2),
    Stage(3, 1, 320, 6, 1),
)
DROP_PATH = 0.2


def efficientnet(
    nn: Layers, x: Tensor, options: Options, width: float, repeat: float, default_dropout: float
) -> Tensor:
    """The seven stages between two convolutions; later blocks are dropped more often in training."""

    def channels(number: int) -> int:
        return make_divisible(number * width / nn.setting.factor)

    repeats = [math.ceil(stage.repeats * repeat) for stage in STAGES]
    x = nn.conv(nn.pad_for_stride(x, 3), channels(32), 3, 2, "valid", bias=False)
    x = nn.activate(nn.batch_norm(x), "silu")
    block = 0
    for stage, number in zip(STAGES, repeats, strict=True):
        for index in range(number):
            rate = DROP_PATH * block / sum(repeats)
            x = _block(nn, x, stage, channels(stage.channels), 1 if index else stage.strides, rate)
            block += 1
    x = nn.activate(nn.batch_norm(nn.conv(x, channels(1280), 1, bias=False)), "silu")
    x = nn.dropout(nn.global_pool(x), options.dropout_or(default_dropout))
    return nn.classify(x, options.num_classes)


def _block(nn: Layers, x: Tensor, stage: Stage, channels: int, strides: int, rate: float) -> Tensor:
    inputs, before = x, nn.count(x)
    if stage.expansion > 1:
        x = nn.activate(nn.batch_norm(nn.conv(x, before * stage.expansion, 1, bias=False)), "silu")
    if strides == 2:
        x = nn.depthwise(nn.pad_for_stride(x, stage.kernel), stage.kernel, 2, "valid")
    else:
        x = nn.depthwise(x, stage.kernel)
    x = nn.activate(nn.batch_norm(x), "silu")
    gate = nn.conv(nn.global_pool(x, keepdims=True), max(1, before // 4), 1, activation="silu")
    x = nn.multiply([x, nn.conv(gate, nn.count(x), 1, activation="sigmoid")])
    x = nn.batch_norm(nn.conv(x, channels, 1, bias=False))
    if strides > 1 or before != channels:
        return x
    return nn.add([nn.drop_path(x, rate), inputs])
