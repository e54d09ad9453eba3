"""Params classes whose annotations are text, some of them about classes that stand further down."""

from __future__ import annotations

import typing

from scena.params import Params, param


class Inner(Params):
    x: int = 1


class Outer(Params):
    number: int
    inner: Inner
    later: list[Later] = param([])
    constant: typing.ClassVar[int] = 3


class Later(Params):
    x: int = 1
