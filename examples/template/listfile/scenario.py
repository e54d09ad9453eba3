"""What holds the parts together; `scena train` is given this."""

from scena import ListFileScenario

from .params import TemplateScenarioParams


class TemplateScenario(ListFileScenario[TemplateScenarioParams]):
    """Learns from files that list files name. [Say here what your scenario does; --help shows it.]"""
