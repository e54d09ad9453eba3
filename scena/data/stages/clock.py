"""Measures how long each part of a pipeline takes. Used by the benchmark only."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

T = TypeVar("T")


class Clock:
    """Seconds per name."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)

    def timed(self, name: str, function: Callable[..., T]) -> Callable[..., T]:
        """`function`, measured."""

        def measured(*arguments: Any) -> T:
            start = time.perf_counter()
            try:
                return function(*arguments)
            finally:
                self.seconds[name] += time.perf_counter() - start

        return measured

    def timed_iterator(self, name: str, items: Iterable[T]) -> Iterator[T]:
        """`items`; the time of getting each counts."""
        iterator = iter(items)
        while True:
            start = time.perf_counter()
            try:
                item = next(iterator)
            except StopIteration:
                return
            finally:
                self.seconds[name] += time.perf_counter() - start
            yield item

    def timed_stream(self, name: str, generate: Callable[..., Iterable[T]]) -> Callable[..., Iterator[T]]:
        """A generating function, measured without the time it waits for its input."""

        def measured(items: Iterable[Any], *arguments: Any) -> Iterator[T]:
            return self.timed_iterator(name, generate(self._excluded(name, items), *arguments))

        return measured

    def _excluded(self, name: str, items: Iterable[T]) -> Iterator[T]:
        iterator = iter(items)
        while True:
            start = time.perf_counter()
            try:
                item = next(iterator)
            except StopIteration:
                return
            finally:
                self.seconds[name] -= time.perf_counter() - start
            yield item
