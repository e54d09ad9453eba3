"""The networks of the zoo: the builder of each, its arguments, image size and options. No Keras here."""

from typing import Any, NamedTuple

Builder = str
"""A function of a module of this folder: "resnet:bottleneck"."""


class Entry(NamedTuple):
    """One network."""

    builder: Builder
    arguments: dict[str, Any]
    input_size: tuple[int, int, int] = (224, 224, 3)
    smallest: int = 32
    options: frozenset[str] = frozenset()
    data_format: str = "NHWC"
    num_classes: int = 1000
    application: str | None = None
    """Its name in keras.applications, whose weights fit."""
    variants: dict[str, tuple[Builder, dict[str, Any]]] = {}
    """Other published forms, by the value of the option `variant`: a builder, and arguments over those above."""


DEPTH = frozenset({"depth"})
DROPOUT = frozenset({"dropout"})
FACE = frozenset({"dropout", "embedding"})
VARIANT = frozenset({"variant"})
CIFAR = (32, 32, 3)
TOWERS = {
    "two_towers": ("alexnet:alexnet_2012", {}),
    "joined_towers": ("alexnet:alexnet_2012", {"towers": 1, "bias": False}),
}
SHORTCUTS = {
    "projection": ("resnet_cifar:resnet_cifar", {"projection": True}),
    "projection_3x3": ("resnet_cifar:resnet_cifar_v2", {}),
}
BOTTLENECKS = {"ResNet50": (3, 4, 6, 3), "ResNet101": (3, 4, 23, 3), "ResNet152": (3, 8, 36, 3)}
# width, depth, size of the image, dropout
EFFICIENTNETS = {
    "B0": (1.0, 1.0, 224, 0.2),
    "B1": (1.0, 1.1, 240, 0.2),
    "B2": (1.1, 1.2, 260, 0.3),
    "B3": (1.2, 1.4, 300, 0.3),
    "B4": (1.4, 1.8, 380, 0.4),
    "B5": (1.6, 2.2, 456, 0.4),
    "B6": (1.8, 2.6, 528, 0.5),
    "B7": (2.0, 3.1, 600, 0.5),
}


def _residual() -> dict[str, Entry]:
    nets = {
        "ResNet18": Entry("resnet:basic", {"blocks": (2, 2, 2, 2)}, options=DEPTH),
        "ResNet34": Entry("resnet:basic", {"blocks": (3, 4, 6, 3)}, options=DEPTH),
    }
    for name, blocks in BOTTLENECKS.items():
        nets[name] = Entry("resnet:bottleneck", {"blocks": blocks}, options=DEPTH, application=name)
    nets |= {f"{name}NCHW": entry._replace(data_format="NCHW") for name, entry in nets.items()}
    for name, blocks in BOTTLENECKS.items():
        nets[f"{name}V2"] = Entry("resnet_v2:bottleneck_v2", {"blocks": blocks}, options=DEPTH, application=f"{name}V2")
    for layers in (20, 32, 44, 56):
        thirds = {"blocks": ((layers - 2) // 6,) * 3}
        nets[f"ResNet{layers}CIFAR"] = Entry(
            "resnet_cifar:resnet_cifar", thirds, CIFAR, 8, DEPTH | VARIANT, num_classes=10, variants=SHORTCUTS
        )
    for layers, width in ((28, 10), (40, 2)):
        arguments = {"blocks": ((layers - 4) // 6,) * 3, "width": width}
        nets[f"WideResNet{layers}_{width}"] = Entry(
            "wide_resnet:wide_resnet", arguments, CIFAR, 8, DEPTH | DROPOUT, num_classes=10
        )
    return nets


def _mobile() -> dict[str, Entry]:
    version2 = Entry("mobilenet_v2:mobilenet_v2", {}, options=DEPTH | DROPOUT, application="MobileNetV2")
    nets = {
        "MobileNetV2": version2,
        "MobileNetV2NCHW": version2._replace(data_format="NCHW"),
        "MobileNetV2CIFAR": version2._replace(
            arguments={"small_images": True}, input_size=CIFAR, num_classes=10, application=None
        ),
    }
    for size in ("Small", "Large"):
        name = f"MobileNetV3{size}"
        nets[name] = Entry("mobilenet_v3:mobilenet_v3", {"size": size.lower()}, options=DROPOUT, application=name)
    for letter, (width, depth, side, dropout) in EFFICIENTNETS.items():
        arguments = {"width": width, "repeat": depth, "default_dropout": dropout}
        name = f"EfficientNet{letter}"
        nets[name] = Entry("efficientnet:efficientnet", arguments, (side, side, 3), options=DROPOUT, application=name)
    return nets


def _nasnet() -> dict[str, Entry]:
    mobile = {"penultimate": 1056, "blocks": 4, "stem": 32}
    large = {"penultimate": 4032, "blocks": 6, "stem": 96, "skip_reduction": True}
    cifar = {"penultimate": 768, "blocks": 6, "stem": 32, "small_images": True}
    return {
        "NASNetMobile": Entry("nasnet:nasnet", mobile, application="NASNetMobile"),
        "NASNetLarge": Entry("nasnet:nasnet", large, (331, 331, 3), application="NASNetLarge"),
        "NASNetCIFAR": Entry("nasnet:nasnet", cifar, CIFAR, 8, num_classes=10),
    }


def _faces() -> dict[str, Entry]:
    nets = {}
    for layers, blocks in {18: (2, 2, 2, 2), 34: (3, 4, 6, 3), 50: (3, 4, 14, 3), 100: (3, 13, 30, 3)}.items():
        nets[f"IResNet{layers}"] = Entry(
            "iresnet:iresnet", {"blocks": blocks}, (112, 112, 3), 16, DEPTH | FACE, num_classes=0
        )
    inception = Entry(
        "inception_resnet:inception_resnet_v2", {}, (299, 299, 3), 75, FACE, application="InceptionResNetV2"
    )
    nets["InceptionResNetV2"] = inception
    nets["InceptionResNetV2Bottleneck"] = inception._replace(
        arguments={"default_embedding": 128}, num_classes=0, application=None
    )
    nets["DeepPixBiS"] = Entry("densenet:deep_pix_bis", {}, num_classes=1)
    return nets


MODELS: dict[str, Entry] = {
    "AlexNet": Entry("alexnet:alexnet", {}, smallest=63, options=DROPOUT | VARIANT, variants=TOWERS),
    "VGG16": Entry("vgg:vgg16", {}, options=DROPOUT, application="VGG16"),
    "SqueezeNet": Entry("squeezenet:squeezenet", {}, options=DROPOUT),
    "TinyDarknet": Entry("darknet:tiny_darknet", {}, smallest=16),
    **_residual(),
    **_mobile(),
    **_nasnet(),
    **_faces(),
}
"""Every network by name."""
