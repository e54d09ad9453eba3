"""`SCENA_FAULT=SEED` makes rare branches common: for tests of Scena itself, and to show that a training does not depend on luck.

Experimental: it is meant to change how often something happens, never a result, which is not shown yet. Messages arrive in pieces,
system calls are interrupted, few batches are made ahead, blocks of steps are short, checkpoints are written between those that are due,
worker processes die and are replaced. Without the setting each function returns what it is given. docs/reliability.md lists the places.
"""

import atexit
import os
import random
import signal
import threading

SETTING = "SCENA_FAULT"
INTERRUPT_SECONDS = 0.02
_seed = os.environ.get(SETTING, "")
_draws: dict[str, random.Random] = {}
_happened: dict[str, int] = {}


def _draw(name: str) -> random.Random:
    """Numbers of their own for each place, so that one place does not change another."""
    if name not in _draws:
        _draws[name] = random.Random(f"{_seed} {name}")
    return _draws[name]


def smaller(name: str, value: int) -> int:
    """`value`, or a number from 1 to it, often 1."""
    if not _seed or value <= 1:
        return value
    return 1 if _draw(name).random() < 0.5 else _draw(name).randint(1, value)


def happens(name: str, one_in: int) -> bool:
    """Whether a rare event happens now; never without the setting.

    The first one comes after about `one_in` calls. Each one makes the next rarer, so that n calls bring about sqrt(2 n / one_in) of them
    and a training of thousands of steps still ends.
    """
    if not _seed or _draw(name).randrange(one_in * (1 + _happened.get(name, 0))):
        return False
    _happened[name] = _happened.get(name, 0) + 1
    return True


def interrupt_calls() -> None:
    """Interrupts the system calls of the main thread again and again (EINTR), from now on."""
    if _seed and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGALRM, lambda number, frame: None)
        signal.setitimer(signal.ITIMER_REAL, INTERRUPT_SECONDS, INTERRUPT_SECONDS)
        atexit.register(signal.setitimer, signal.ITIMER_REAL, 0)  # Python takes its handlers back before it ends
