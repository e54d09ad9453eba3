"""Tiny Darknet (Redmon, the Darknet project): convolutions of 3 × 3 with bottlenecks of 1 × 1 between them."""

from scena.model.zoo.namespace import Layers, Options, Tensor

STAGES = ((16, 128), (32, 256), (64, 512))


def tiny_darknet(nn: Layers, x: Tensor, options: Options) -> Tensor:
    """Two convolutions, three stages of bottlenecks, and a convolution as classifier whose map is averaged."""
    for filters in (16, 32):
        x = nn.max_pool(_conv(nn, x, filters, 3), 2, 2)
    for number, (narrow, wide) in enumerate(STAGES):
        x = nn.max_pool(x, 2, 2) if number else x
        for _ in range(2):
            x = _conv(nn, _conv(nn, x, narrow, 1), wide, 3)
    x = _conv(nn, x, 128, 1)
    return nn.real.global_pool(nn.classify_map(x, options.num_classes))


def _conv(nn: Layers, x: Tensor, filters: int, kernel: int) -> Tensor:
    x = nn.conv(x, nn.channels(filters), kernel, bias=False)
    return nn.leaky_relu(nn.batch_norm(x, epsilon=1e-5), 0.1)
