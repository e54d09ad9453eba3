"""The algebras of the typed layers: their blades and the product of any two of them. Pure Python, no Keras.

A tensor of an algebra with N components has N × C channels: all channels of the first component, then all of the second, and so on.
"""

from functools import cache
from typing import NamedTuple

from scena.errors import ModelError

Blade = tuple[int, ...]
"""The indices of the basis vectors of a blade, ascending: () is 1, (1, 2) is e12."""


class Term(NamedTuple):
    """One product inside a linear layer: input component × kernel component = sign × output component."""

    input: int
    kernel: int
    output: int
    sign: int


class Algebra(NamedTuple):
    """A real algebra that is spanned by blades of Cl(n,0) and closed under their product."""

    name: str
    blades: tuple[Blade, ...]

    @property
    def components(self) -> int:
        """How many real numbers one element has."""
        return len(self.blades)

    @property
    def blade_names(self) -> list[str]:
        """The blades as they are written: 1, e1, e12, …"""
        return ["e" + "".join(map(str, blade)) if blade else "1" for blade in self.blades]

    def terms(self) -> tuple[Term, ...]:
        """Every product of two blades; each pair (input, output) has exactly one kernel component."""
        return _terms(self)


def multiply_blades(left: Blade, right: Blade) -> tuple[Blade, int]:
    """The product of two blades and its sign: each swap that sorts the indices flips it, an equal pair cancels (e_i² = 1)."""
    indices = [*left, *right]
    sign = 1
    for end in range(len(indices) - 1, 0, -1):
        for at in range(end):
            if indices[at] > indices[at + 1]:
                indices[at], indices[at + 1] = indices[at + 1], indices[at]
                sign = -sign
    return tuple(index for index in sorted(set(indices)) if indices.count(index) % 2), sign


@cache
def _terms(algebra: Algebra) -> tuple[Term, ...]:
    terms = []
    for left, left_blade in enumerate(algebra.blades):
        for right, right_blade in enumerate(algebra.blades):
            blade, sign = multiply_blades(left_blade, right_blade)
            terms.append(Term(left, right, algebra.blades.index(blade), sign))
    return tuple(terms)


ALGEBRAS = {
    algebra.name: algebra
    for algebra in (
        Algebra("real", ((),)),
        Algebra("type1", ((), (1, 2))),
        Algebra("type2", ((), (1, 2), (2, 3), (1, 3))),
        Algebra("type3", ((), (1,), (2,), (3,), (1, 2), (1, 3), (2, 3), (1, 2, 3))),
    )
}
"""The algebras by name: real numbers, complex numbers, quaternions and Cl(3,0)."""


def get_algebra(name: "str | Algebra") -> Algebra:
    """The algebra of that name.

    Raises:
        ModelError: there is none.
    """
    if isinstance(name, Algebra):
        return name
    if name not in ALGEBRAS:
        raise ModelError(f"There is no algebra {name!r}; choose one of {', '.join(ALGEBRAS)}.")
    return ALGEBRAS[name]
