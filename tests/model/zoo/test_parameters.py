"""The numbers of parameters and operations that were published or agreed on, and their equality in Keras."""

import pytest

from scena.model.zoo import count_flops, create_network
from scena.model.zoo.catalogue import MODELS
from scena.model.zoo.params import AlgebraParams, BatchNorm, Framework, Leave, WayIn, WayOut
from scena.model.zoo.request import count_network

# All parameters at factor 1; those not in reference/zoo.md are what their papers and keras.applications give.
TOTALS = {
    "AlexNet": 61_100_840,
    "VGG16": 138_357_544,
    "SqueezeNet": 1_235_496,
    "ResNet18": 11_699_112,
    "ResNet34": 21_814_696,
    "ResNet50": 25_636_712,
    "ResNet101": 44_707_176,
    "ResNet152": 60_419_944,
    "ResNet50V2": 25_613_800,
    "ResNet101V2": 44_675_560,
    "ResNet152V2": 60_380_648,
    "MobileNetV2": 3_538_984,
    "MobileNetV3Small": 2_554_968,
    "MobileNetV3Large": 5_507_432,
    "EfficientNetB0": 5_330_564,
    "NASNetMobile": 5_326_716,
    "NASNetLarge": 88_949_818,
    "InceptionResNetV2": 55_873_736,
}
# The other published forms; docs/zoo.md names their sources.
VARIANTS = {
    ("AlexNet", "two_towers"): 60_965_224,
    ("AlexNet", "joined_towers"): 62_368_776,
    ("ResNet20CIFAR", "projection"): 274_042,
    ("ResNet20CIFAR", "projection_3x3"): 294_250,
    ("ResNet32CIFAR", "projection_3x3"): 489_578,
    ("ResNet44CIFAR", "projection_3x3"): 684_906,
    ("ResNet56CIFAR", "projection_3x3"): 880_234,
}
# Without moving statistics, as the papers of these count.
TRAINABLE = {
    "ResNet20CIFAR": 269_722,
    "ResNet32CIFAR": 464_154,
    "ResNet44CIFAR": 658_586,
    "ResNet56CIFAR": 853_018,
    "WideResNet28_10": 36_479_194,
    "WideResNet40_2": 2_243_546,
}
PUBLISHED_MILLIONS = {
    "TinyDarknet": 1.0,
    "NASNetCIFAR": 3.3,
    "EfficientNetB1": 7.8,
    "EfficientNetB2": 9.2,
    "EfficientNetB3": 12,
    "EfficientNetB4": 19,
    "EfficientNetB5": 30,
    "EfficientNetB6": 43,
    "EfficientNetB7": 66,
    "IResNet18": 24.0,
    "IResNet34": 34.1,
    "IResNet50": 43.6,
    "IResNet100": 65.2,
}
PUBLISHED_MULTIPLY_ADDS = {
    "AlexNet": 0.71e9,
    "VGG16": 15.5e9,
    "ResNet18": 1.8e9,
    "ResNet34": 3.6e9,
    "ResNet50": 3.8e9,
    "ResNet101": 7.6e9,
    "ResNet152": 11.3e9,
    "MobileNetV2": 0.3e9,
    "MobileNetV3Small": 0.056e9,
    "MobileNetV3Large": 0.219e9,
    "EfficientNetB0": 0.39e9,
    "EfficientNetB7": 37e9,
    "NASNetMobile": 0.564e9,
    "NASNetLarge": 23.8e9,
    "IResNet100": 12.1e9,
}


@pytest.mark.parametrize("name", TOTALS)
def test_totals(name: str) -> None:
    assert count_network(name).parameters == TOTALS[name]


@pytest.mark.parametrize(("name", "variant"), VARIANTS)
def test_variants(name: str, variant: str) -> None:
    assert count_network(name, variant=variant).parameters == VARIANTS[name, variant]
    assert_counts_agree(name, factor=16, framework="upstride_type1", variant=variant)


@pytest.mark.parametrize("name", TRAINABLE)
def test_trainable_parameters(name: str) -> None:
    assert count_network(name).trainable == TRAINABLE[name]


@pytest.mark.parametrize("name", PUBLISHED_MILLIONS)
def test_published_sizes(name: str) -> None:
    assert count_network(name).trainable / 1e6 == pytest.approx(PUBLISHED_MILLIONS[name], rel=0.05)


@pytest.mark.parametrize("name", PUBLISHED_MULTIPLY_ADDS)
def test_published_operations(name: str) -> None:
    assert count_network(name).flops / 2 == pytest.approx(PUBLISHED_MULTIPLY_ADDS[name], rel=0.04)


def test_nchw_has_the_same_parameters() -> None:
    for name in (name for name in MODELS if name.endswith("NCHW")):
        assert count_network(name) == count_network(name.removesuffix("NCHW"))


@pytest.mark.parametrize("name", MODELS)
def test_every_factor_of_every_framework_fits_together(name: str) -> None:
    """Sums need equal shapes, so a wrong number of channels would be an error."""
    for framework in Framework:
        totals = [count_network(name, None, None, factor, framework).parameters for factor in (0.5, 1, 2, 4, 7, 1000)]
        assert totals == sorted(totals, reverse=True)


def test_a_factor_below_1_widens() -> None:
    wide = create_network("ResNet20CIFAR", factor=0.5, depth=0.1)
    assert [layer.filters for layer in wide.layers if hasattr(layer, "filters")] == [32] * 3 + [64] * 2 + [128] * 2
    thirds = count_network("VGG16", factor=1 / 3), count_network("VGG16", factor=0.7)
    assert [total.parameters for total in thirds] == [1_220_549_032, 279_648_559]


def assert_counts_agree(name: str, **keywords: object) -> None:
    entry = MODELS[name]
    size = (entry.smallest + 5, entry.smallest + 2, 3)
    counted = count_network(name, size, 10, **keywords)
    model = create_network(name, size, 10, **keywords)  # type: ignore[arg-type]
    assert counted.parameters == model.count_params()
    assert counted.trainable == sum(weight.value.shape.num_elements() for weight in model.trainable_weights)
    assert counted.flops == count_flops(model)


@pytest.mark.parametrize(
    "name", ["AlexNet", "SqueezeNet", "TinyDarknet", "ResNet18", "MobileNetV2", "MobileNetV3Small", "IResNet18"]
)
def test_counting_agrees_with_keras(name: str) -> None:
    assert_counts_agree(name, factor=8, framework="upstride_type1")


def test_counting_agrees_with_keras_in_every_way_of_an_algebra() -> None:
    for way_in, way_out in zip([*WayIn, WayIn.BASIC], WayOut, strict=True):
        algebra = AlgebraParams(way_in=way_in, way_out=way_out, batch_norm=BatchNorm.WHITENING)
        keywords = {"factor": 8, "framework": "upstride_type2", "algebra": algebra}
        assert_counts_agree("ResNet20CIFAR", depth=0.1, **keywords)
    algebra = AlgebraParams(way_out=WayOut.NORM, leave=Leave.AFTER, shared_dropout=True)
    for name in ("IResNet18", "SqueezeNet"):
        assert_counts_agree(name, factor=8, framework="upstride_type3", algebra=algebra, dropout=0.1)


@pytest.mark.long
@pytest.mark.parametrize("framework", Framework)
@pytest.mark.parametrize("name", [name for name in MODELS if not name.endswith("NCHW")])
def test_counting_agrees_with_keras_for_all(name: str, framework: str) -> None:
    assert_counts_agree(name, factor=4, framework=framework)
