"""A processor that reports about the process it runs in."""

import os
import sys
from pathlib import Path

from scena.data import DataProcessorParams, MappingDataProcessor, Sample


class ModulesParams(DataProcessorParams, builds=":Modules"):
    pass


class Modules(MappingDataProcessor[ModulesParams]):
    def apply(self, sample: Sample) -> Sample:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        heavy = [name for name in ("tensorflow", "keras", "pandas", "scena.model") if name in sys.modules]
        return sample.new_meta({"pid": os.getpid(), "heavy": heavy, "rss": pages * os.sysconf("SC_PAGESIZE")})
