"""The public names of `scena.data.engines`; each is imported when it is first used."""

from scena.data.engines.in_process import Engine as Engine
from scena.data.engines.in_process import InProcessEngine as InProcessEngine
