"""Every product of two blades, against matrices."""

import itertools

import numpy as np
import pytest

from scena.errors import ModelError
from scena.model.layers import ALGEBRAS, get_algebra, multiply_blades
from tests.model.layers.naive import BLADES, NAMES, matrix, table


@pytest.mark.parametrize("name", NAMES)
def test_blades(name: str) -> None:
    assert list(get_algebra(name).blades) == BLADES[name]
    assert get_algebra(name).components == len(BLADES[name])


@pytest.mark.parametrize("name", NAMES)
def test_every_product_of_two_blades(name: str) -> None:
    size = len(BLADES[name])
    found = np.zeros((size, size, size))
    for term in get_algebra(name).terms():
        found[term.input, term.kernel, term.output] += term.sign
    np.testing.assert_allclose(found, table(name), atol=1e-12)


def test_products_are_those_of_matrices_and_associative() -> None:
    for left, right in itertools.product(BLADES["type3"], repeat=2):
        blade, sign = multiply_blades(left, right)
        np.testing.assert_allclose(matrix(left) @ matrix(right), sign * matrix(blade))
    for a, b, c in itertools.product(BLADES["type3"], repeat=3):
        ab, first = multiply_blades(a, b)
        bc, second = multiply_blades(b, c)
        whole, third = multiply_blades(ab, c)
        assert (whole, first * third) == (
            multiply_blades(a, bc)[0],
            second * multiply_blades(a, bc)[1],
        )


def test_quaternions() -> None:
    one, i, j, k = get_algebra("type2").blades
    assert get_algebra("type2").blade_names == ["1", "e12", "e23", "e13"]
    assert (multiply_blades(i, j), multiply_blades(j, k), multiply_blades(k, i)) == ((k, 1), (i, 1), (j, 1))
    assert [multiply_blades(x, x) for x in (i, j, k)] == [(one, -1)] * 3


def test_each_input_and_output_have_one_kernel_between_them() -> None:
    """That is what makes the kernel a matrix of blocks."""
    for algebra in ALGEBRAS.values():
        pairs = [(term.input, term.output) for term in algebra.terms()]
        assert len(set(pairs)) == algebra.components**2


def test_an_unknown_algebra() -> None:
    with pytest.raises(ModelError, match=r"There is no algebra 'type4'; choose one of real, type1, type2, type3\."):
        get_algebra("type4")
