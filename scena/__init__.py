"""Scena: a research framework for Keras 3. Names are imported when they are first used, so that nothing heavy loads early."""

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "scena.params": ["Params", "ParamsError", "param"],
    "scena.data.database": ["DataBase"],
    "scena.data.generator": ["DataGenerator", "RandomAccessGenerator"],
    "scena.data.params": ["PipelineMode"],
    "scena.data.params": [
        "ComposedProcessorPipelineParams",
        "DataBaseParams",
        "DataGeneratorParams",
        "DataPipelineParams",
        "DataProcessorParams",
        "SequentialProcessorPipelineParams",
    ],
    "scena.data.processor": ["GeneratingDataProcessor", "MappingDataProcessor"],
    "scena.data.resource": ["Resource"],
    "scena.data.sample": ["Sample"],
    "scena.data.spec": ["ArraySpec"],
    "scena.backends.params": ["DeviceParams", "TrainerDeviceParams"],
    "scena.evaluation.callbacks": ["LAVCallback"],
    "scena.evaluation.evaluator": ["Evaluator"],
    "scena.evaluation.lav": ["LAV"],
    "scena.evaluation.multi": ["MultiLAV"],
    "scena.evaluation.params": ["EvaluatorParams", "LAVParams"],
    "scena.model.graph": ["GenericGraphBase", "GraphBase", "RootGraph"],
    "scena.model.model": ["ModelBase"],
    "scena.model.params": ["ModelBaseParams"],
    "scena.model.tensorboard": ["TensorBoardWriter", "add_tensorboard"],
    "scena.model.tensorboard_data": ["AudioData", "HistogramData", "ImageData", "PRCurveData", "TextData"],
    "scena.model.training_model": ["TrainingModel"],
    "scena.prediction.params": ["PredictorParams"],
    "scena.prediction.predictor": ["Predictor"],
    "scena.prediction.voting": ["MultiModelPredictor"],
    "scena.scenario.listfile": ["ListFileScenario"],
    "scena.scenario.params": ["ScenarioBaseParams"],
    "scena.scenario.scenario": ["ScenarioBase"],
    "scena.training.callbacks.base": ["TrainerCallback"],
    "scena.training.params": ["TrainerParams"],
    "scena.training.pipelines": ["TrainValParams", "TrainerPipelineParams", "TrainerPipelineParamsBase"],
    "scena.training.trainer": ["Trainer"],
    "scena.training.warmstart.params": ["WarmStartParams"],
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME_OF)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'scena' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME_OF])


if TYPE_CHECKING:
    from scena.backends.params import DeviceParams as DeviceParams
    from scena.backends.params import TrainerDeviceParams as TrainerDeviceParams
    from scena.data.database import DataBase as DataBase
    from scena.data.generator import DataGenerator as DataGenerator
    from scena.data.generator import RandomAccessGenerator as RandomAccessGenerator
    from scena.data.params import ComposedProcessorPipelineParams as ComposedProcessorPipelineParams
    from scena.data.params import DataBaseParams as DataBaseParams
    from scena.data.params import DataGeneratorParams as DataGeneratorParams
    from scena.data.params import DataPipelineParams as DataPipelineParams
    from scena.data.params import DataProcessorParams as DataProcessorParams
    from scena.data.params import PipelineMode as PipelineMode
    from scena.data.params import SequentialProcessorPipelineParams as SequentialProcessorPipelineParams
    from scena.data.processor import GeneratingDataProcessor as GeneratingDataProcessor
    from scena.data.processor import MappingDataProcessor as MappingDataProcessor
    from scena.data.resource import Resource as Resource
    from scena.data.sample import Sample as Sample
    from scena.data.spec import ArraySpec as ArraySpec
    from scena.evaluation.callbacks import LAVCallback as LAVCallback
    from scena.evaluation.evaluator import Evaluator as Evaluator
    from scena.evaluation.lav import LAV as LAV
    from scena.evaluation.multi import MultiLAV as MultiLAV
    from scena.evaluation.params import EvaluatorParams as EvaluatorParams
    from scena.evaluation.params import LAVParams as LAVParams
    from scena.model.graph import GenericGraphBase as GenericGraphBase
    from scena.model.graph import GraphBase as GraphBase
    from scena.model.graph import RootGraph as RootGraph
    from scena.model.model import ModelBase as ModelBase
    from scena.model.params import ModelBaseParams as ModelBaseParams
    from scena.model.tensorboard import TensorBoardWriter as TensorBoardWriter
    from scena.model.tensorboard import add_tensorboard as add_tensorboard
    from scena.model.tensorboard_data import AudioData as AudioData
    from scena.model.tensorboard_data import HistogramData as HistogramData
    from scena.model.tensorboard_data import ImageData as ImageData
    from scena.model.tensorboard_data import PRCurveData as PRCurveData
    from scena.model.tensorboard_data import TextData as TextData
    from scena.model.training_model import TrainingModel as TrainingModel
    from scena.params import Params as Params
    from scena.params import ParamsError as ParamsError
    from scena.params import param as param
    from scena.prediction.params import PredictorParams as PredictorParams
    from scena.prediction.predictor import Predictor as Predictor
    from scena.prediction.voting import MultiModelPredictor as MultiModelPredictor
    from scena.scenario.listfile import ListFileScenario as ListFileScenario
    from scena.scenario.params import ScenarioBaseParams as ScenarioBaseParams
    from scena.scenario.scenario import ScenarioBase as ScenarioBase
    from scena.training.callbacks.base import TrainerCallback as TrainerCallback
    from scena.training.params import TrainerParams as TrainerParams
    from scena.training.pipelines import TrainerPipelineParams as TrainerPipelineParams
    from scena.training.pipelines import TrainerPipelineParamsBase as TrainerPipelineParamsBase
    from scena.training.pipelines import TrainValParams as TrainValParams
    from scena.training.trainer import Trainer as Trainer
    from scena.training.warmstart.params import WarmStartParams as WarmStartParams
