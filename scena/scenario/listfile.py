"""`ListFileScenario`: samples are named in text files, one per line."""

from typing import Any, Generic, TypeVar

from scena.data.params import DataGeneratorParams
from scena.data.sources.params import ListFileGeneratorParams
from scena.params import Params, param
from scena.scenario.params import ScenarioBaseParams
from scena.scenario.scenario import ScenarioBase
from scena.training.pipelines import TrainerPipelineParams

TListScenarioParams = TypeVar("TListScenarioParams", bound=ScenarioBaseParams[Any, Any])


class LavListsParams(Params):
    """What LAV runs on during training."""

    lists: list[str] | None = param(
        None, help="list files for LAV, one set of results each (default: those of --val.lists)"
    )


class ListFilePipelineParams(TrainerPipelineParams[ListFileGeneratorParams, ListFileGeneratorParams]):
    """List files for training (`--train.lists`), validation (`--val.lists`) and LAV (`--lav.lists`)."""

    lav: LavListsParams = param(flat=True, help="list files for LAV during training")

    def val_gen(self) -> DataGeneratorParams | None:
        """The validation lists; None if there are none."""
        return self.val_source if getattr(self.val_source, "lists", True) else None  # records have none

    def lav_gen(self) -> dict[str, DataGeneratorParams]:
        """One source for each list."""
        if self.lav.lists is None:
            return super().lav_gen()
        return self.val_source.replace(lists=self.lav.lists, list_ratios=[]).parts()


class ListFileScenario(ScenarioBase[TListScenarioParams, ListFilePipelineParams], Generic[TListScenarioParams]):
    """A scenario whose samples are lines of list files: `class Lines(ListFileScenario[LinesParams])`."""
