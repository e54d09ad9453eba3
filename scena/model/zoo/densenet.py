"""DeepPixBiS (George and Marcel 2019) for presentation attacks: the front of DenseNet161 and a map of scores."""

from scena.model.zoo.namespace import Layers, Options, Tensor

EPSILON = 1.001e-5
GROWTH, STEM, BLOCKS = 48, 96, (6, 12)  # DenseNet161, up to its second transition


def deep_pix_bis(nn: Layers, x: Tensor, options: Options) -> dict[str, Tensor]:
    """The map of scores (NHWC, one for each position) and the score of the whole image, both as logits."""
    x = dense_front(nn, x, GROWTH, STEM, BLOCKS)
    scores = nn.classify_map(x, 1)
    outputs = {"map": nn.as_nhwc(scores)}
    if options.num_classes:
        flat = nn.real.flatten(nn.real.activate(scores, "sigmoid"))
        outputs["logits"] = nn.real.dense(flat, options.num_classes)
    return outputs


def dense_front(nn: Layers, x: Tensor, growth: int, stem: int, blocks: tuple[int, ...]) -> Tensor:
    """Stem, and for each number a block of that many dense layers with a transition behind it (Huang et al. 2017)."""
    x = nn.activate(_normalise(nn, nn.conv(nn.pad(x, 3), nn.channels(stem), 7, 2, "valid", bias=False)))
    x = nn.max_pool(nn.pad(x, 1), 3, 2)
    for number in blocks:
        for _ in range(number):
            inside = nn.conv(nn.activate(_normalise(nn, x)), nn.channels(4 * growth), 1, bias=False)
            inside = nn.conv(nn.activate(_normalise(nn, inside)), nn.channels(growth), 3, bias=False)
            x = nn.concat([x, inside])
        x = nn.conv(nn.activate(_normalise(nn, x)), max(1, nn.count(x) // 2), 1, bias=False)
        x = nn.avg_pool(x, 2, 2)
    return x


def _normalise(nn: Layers, x: Tensor) -> Tensor:
    return nn.batch_norm(x, EPSILON)
