"""The products of the algebras in another way than the package has them: blades as matrices, components one by one."""

from functools import cache

import numpy as np

PAULI = {
    1: np.array([[0, 1], [1, 0]], complex),
    2: np.array([[0, -1j], [1j, 0]], complex),
    3: np.array([[1, 0], [0, -1]], complex),
}
BLADES = {
    "real": [()],
    "type1": [(), (1, 2)],
    "type2": [(), (1, 2), (2, 3), (1, 3)],
    "type3": [(), (1,), (2,), (3,), (1, 2), (1, 3), (2, 3), (1, 2, 3)],
}
NAMES = list(BLADES)


def matrix(blade: tuple[int, ...]) -> np.ndarray:
    """The Pauli matrices represent Cl(3,0) faithfully over the real numbers."""
    product = np.eye(2, dtype=complex)
    for index in blade:
        product = product @ PAULI[index]
    return product


@cache
def table(name: str) -> np.ndarray:
    """table[i, j, k] is the coefficient of blade k in blade i × blade j."""
    matrices = [matrix(blade) for blade in BLADES[name]]
    # the real part of a trace is an inner product in which the blades are orthonormal
    duals = [np.conj(one).T / 2 for one in matrices]
    return np.array([[[np.trace(d @ a @ b).real for d in duals] for b in matrices] for a in matrices])


def components(array: np.ndarray, name: str, axis: int = -1) -> list[np.ndarray]:
    """The components of a stacked array."""
    return np.split(array, len(BLADES[name]), axis=axis)


def product(name: str, inputs: list, kernels: list, multiply) -> list:  # type: ignore[no-untyped-def,type-arg]
    """Output component k is the sum of table[i, j, k] · inputs[i] · kernels[j], each product made by itself."""
    signs = table(name)
    size = len(inputs)
    outputs = []
    for k in range(size):
        terms = [
            signs[i, j, k] * multiply(inputs[i], kernels[j]) for i in range(size) for j in range(size) if signs[i, j, k]
        ]
        outputs.append(sum(terms[1:], terms[0]))
    return outputs
