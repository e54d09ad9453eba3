"""`scena zoo [NAME…]`: the networks of the zoo with their parameters and operations. Nothing is built, so it answers at once."""

from fnmatch import fnmatchcase

from scena.commands.command import Command
from scena.commands.output import print_table
from scena.errors import ModelError
from scena.model.zoo.catalogue import MODELS
from scena.model.zoo.params import SMALLEST_FACTOR, Framework
from scena.model.zoo.request import count_network
from scena.params import Params, ParamsError, param


class ZooOptions(Params):
    """What to list, and for which setting."""

    names: list[str] = param([], positional="NAME", help="networks; wildcards are allowed: 'ResNet*' (default: all)")
    input_size: list[int] | None = param(
        None, gt=0, help="height, width and channels of the images (default: what each network was made for)"
    )
    num_classes: int | None = param(
        None,
        ge=0,
        help="units of the classifier (default: 1000, and what suits networks for small images and for faces)",
    )
    factor: float = param(
        1, ge=SMALLEST_FACTOR, help="divides the number of channels of every layer; below 1 it widens them"
    )
    framework: Framework = param(Framework.TENSORFLOW, help="real numbers, or the algebra of type 1, 2 or 3")
    variant: str | None = param(None, help="another published form, for the networks that have it")
    options: bool = param(False, help="show which networks have depth, dropout, embedding or variants")


class Zoo(Command):
    """Lists networks with the size of their images, their parameters (all, and trainable) and their floating point operations for
    one image: two for each multiply-add of a convolution or dense layer.
    """

    name = "zoo"
    options: ZooOptions

    def run(self) -> None:
        options = self.options
        if options.input_size is not None and len(options.input_size) != 3:
            raise ParamsError(f"--input_size takes height, width and channels. Received: {options.input_size}")
        columns = ["name", "input", "parameters", "trainable", "FLOPs"]
        rows = [_row(name, options) for name in _with_variant(_chosen(options.names), options.variant)]
        if options.options:
            columns.append("options")
            rows = [[*row, _options_of(row[0])] for row in rows]
        print_table(columns, rows)


def _chosen(patterns: list[str]) -> list[str]:
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in MODELS):
            from scena.errors import did_you_mean

            raise ModelError(
                f"There is no network {pattern!r}{did_you_mean(pattern, MODELS)}. `scena zoo` lists them all."
            )
    return [name for name in MODELS if not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)]


def _with_variant(names: list[str], variant: str | None) -> list[str]:
    """Those of the networks that have the variant."""
    if variant is None:
        return names
    if having := [name for name in names if variant in MODELS[name].variants]:
        return having
    there_are = sorted({f"{other} ({name})" for name in names for other in MODELS[name].variants})
    raise ModelError(f"None of these networks has a variant {variant!r}; there are: {', '.join(there_are) or 'none'}.")


def _options_of(name: str) -> str:
    entry = MODELS[name]
    variants = f"={'|'.join(entry.variants)}"
    return " ".join(f"{option}{variants if option == 'variant' else ''}" for option in sorted(entry.options))


def _row(name: str, options: ZooOptions) -> list[str]:
    entry = MODELS[name]
    size = options.input_size or entry.input_size
    shown = "×".join(map(str, size))
    if min(size[:2]) < entry.smallest:
        return [name, shown, f"needs at least {entry.smallest}×{entry.smallest}", "", ""]
    totals = count_network(name, size, options.num_classes, options.factor, options.framework, variant=options.variant)
    return [name, shown, f"{totals.parameters:,}", f"{totals.trainable:,}", readable(totals.flops)]


def readable(number: int) -> str:
    """A large number with three digits: 7.72 G."""
    for unit, size in (("T", 10**12), ("G", 10**9), ("M", 10**6), ("k", 10**3)):
        if number >= size:
            return f"{number / size:.3g} {unit}"
    return str(number)
