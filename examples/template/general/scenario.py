"""What holds the parts together; `scena train` is given this."""

from scena import ScenarioBase, TrainValParams

from .params import TemplateScenarioParams, TemplateSourceParams


class TemplateScenario(ScenarioBase[TemplateScenarioParams, TrainValParams[TemplateSourceParams]]):
    """Tells two rings of points apart."""  # [Say here what your scenario does: --help and reports show it.]
