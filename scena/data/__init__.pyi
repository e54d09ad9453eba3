"""The public names of `scena.data`; each is imported when it is first used."""

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
from scena.data.pipeline import DataPipeline as DataPipeline
from scena.data.processor import GeneratingDataProcessor as GeneratingDataProcessor
from scena.data.processor import MappingDataProcessor as MappingDataProcessor
from scena.data.resource import Resource as Resource
from scena.data.sample import Batch as Batch
from scena.data.sample import Cursor as Cursor
from scena.data.sample import Sample as Sample
from scena.data.spec import ArraySpec as ArraySpec
from scena.errors import DataError as DataError
from scena.errors import EmptyDataError as EmptyDataError
from scena.errors import WorkerError as WorkerError
