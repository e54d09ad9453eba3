"""The public names of `scena.scenario.classification`; each is imported when it is first used."""

from scena.scenario.classification.evaluator import ClassificationEvaluator as ClassificationEvaluator
from scena.scenario.classification.params import ClassificationEvaluatorParams as ClassificationEvaluatorParams
from scena.scenario.classification.params import ImagePathsParams as ImagePathsParams
