"""What holds the parts together; `scena train` is given this."""

from scena import ListFileScenario, ScenarioBaseParams

from .params import TemplateDataParams, TemplateModelParams


class TemplateScenario(ListFileScenario[ScenarioBaseParams[TemplateDataParams, TemplateModelParams]]):
    """Learns from files that list files name."""  # [Say here what your scenario does: --help and reports show it.]
