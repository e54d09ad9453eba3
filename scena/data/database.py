"""The data class of a scenario: specs of what the model sees, and pipelines made to them."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from scena.data.generator import as_generator
from scena.data.params import DataBaseParams, DataPipelineParams, DataProcessorPipelineParams, PipelineMode
from scena.data.pipeline import DataPipeline, SamplePipeline
from scena.data.sample import Sample
from scena.data.spec import ArraySpec
from scena.data.stages.collate import Collator
from scena.data.stages.context import PipelineContext
from scena.errors import DataError
from scena.overriding import Overridable, OverridingError
from scena.params.annotations import type_argument
from scena.params.declare import Params, complete_repr

if TYPE_CHECKING:
    from scena.data.tensorflow.transform import Transformation

P = TypeVar("P", bound=DataBaseParams)
_VARIABLE: Any = P


class DataBase(Overridable, Generic[P]):
    """Describes the data of a scenario: its `inputs` and `targets`, and how a sample is printed.

    Example:
        class MyData(DataBase[MyDataParams]):
            inputs = {"img": ArraySpec((28, 28), "uint8")}
            targets = {"gt": ArraySpec((), "int32")}
    """

    inputs: ClassVar[Mapping[str, Any]] = {}
    """Name, shape (without batch dimension) and dtype of each input; override `input_specs` if they depend on parameters."""
    targets: ClassVar[Mapping[str, Any]] = {}
    """The same for the targets, and `target_specs`."""
    allow_nan: ClassVar[bool] = False
    """NaN in an input marks a missing value that the graph handles, so a training does not warn of it."""

    __two_names__ = {
        "input_specs": "_input_layer_specs",
        "target_specs": "_target_layer_specs",
        "input_batch_specs": "_input_batch_specs",
        "target_batch_specs": "_target_batch_specs",
        "padding": "_padding_values",
    }
    __attributes__ = {"inputs": "input_specs", "targets": "target_specs"}
    __elsewhere__ = dict.fromkeys(("loss", "metrics"), "the model (ModelBase)")

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name in ("inputs", "targets"):
            if not isinstance(found := getattr(cls, name), Mapping | property):
                kind = type(found).__name__
                raise OverridingError(f"{cls.__name__}.{name} must be a dict of ArraySpec by name. Received: {kind}.")

    def __init__(self, params: P, **static: Any) -> None:
        self.params = params
        self.static = static
        self._pipelines: dict[tuple[Any, ...], DataPipeline] = {}

    @classmethod
    def default_params(cls) -> P:
        """Fresh parameters of this data class; override it to set up processors."""
        params: P = type_argument(cls, _VARIABLE)()
        return params

    def input_specs(self) -> dict[str, Any]:
        """Name, shape (without batch dimension) and dtype of each input of the model; the default is `inputs`."""
        if not self.inputs:
            example = 'inputs = {"x": ArraySpec((2,), "float32")}'
            raise DataError(
                f"{type(self).__name__} must name its inputs, for example {example}, or define input_specs(self)."
            )
        return dict(self.inputs)

    def target_specs(self) -> dict[str, Any]:
        """Name, shape and dtype of each target; the default is `targets`."""
        return dict(self.targets)

    def input_batch_specs(self) -> dict[str, Any]:
        """What the inputs are before `tf_transform`; default: what the model gets."""
        return self.input_specs()

    def target_batch_specs(self) -> dict[str, Any]:
        """What the targets are before `tf_transform`; default: what the model gets."""
        return self.target_specs()

    def tf_transform(self, dataset: Any, mode: PipelineMode) -> Any:
        """Override it to change batches with TensorFlow's operations; it receives a `tf.data.Dataset` and returns one.

        An element is a dict: `inputs` and `targets` (by name, with a batch axis), `batch` (its number in the epoch) and `seed`
        (two numbers that depend on seed, epoch and batch, for `tf.random.stateless_…`). A result that keeps `batch`, as a map
        or filter does, restarts at any batch; without it, a restart makes the batches of the epoch again.
        """
        del mode
        return dataset

    @property
    def transforms_batches(self) -> bool:
        """Whether the class has a `tf_transform` of its own."""
        return type(self).tf_transform is not DataBase.tf_transform

    def padding(self) -> dict[str, Any]:
        """The value that fills up variable axes, by name; 0 by default."""
        return {}

    def input_layer_specs(self) -> dict[str, ArraySpec]:
        return _specs(self.input_specs())

    def target_layer_specs(self) -> dict[str, ArraySpec]:
        return _specs(self.target_specs())

    def batch_specs(self) -> tuple[dict[str, ArraySpec], dict[str, ArraySpec]]:
        """The specs of inputs and targets as the pipeline makes them, before `tf_transform`."""
        if not self.transforms_batches:
            return self.input_layer_specs(), self.target_layer_specs()
        return _specs(self.input_batch_specs()), _specs(self.target_batch_specs())

    def padding_values(self) -> dict[str, Any]:
        """The padding value of each input and target."""
        inputs, targets = self.batch_specs()
        names = [*inputs, *targets]
        values = self.padding()
        unknown = sorted(set(values) - set(names))
        if unknown:
            raise ValueError(f"{type(self).__name__}.padding names {unknown}, but the specs have {names}.")
        return {name: values.get(name, 0) for name in names}

    def describe(self, sample: Sample) -> str:
        """One predicted sample as text, for validations and `scena predict`; "" prints nothing in a validation.

        `sample.targets` is empty in a prediction.
        """
        del sample
        return ""

    def describe_prediction(self, sample: Sample) -> str:
        """What `scena predict` prints about a sample: its description, else its outputs."""
        return self.describe(sample) or ", ".join(f"{name}: {value}" for name, value in sample.outputs.items())

    def processors(self, pipeline_params: DataPipelineParams) -> DataProcessorPipelineParams:
        """The processors before the model; override it to add some that depend on the pipeline's parameters."""
        del pipeline_params
        return self.params.pre_proc

    def create_pipeline(self, mode: PipelineMode, pipeline_params: DataPipelineParams, source: Any, *,
                        seed: int = 0) -> DataPipeline:  # fmt: skip
        """A pipeline that turns `source` (generator params, a generator or an iterable of samples) into batches."""
        generator = as_generator(source, mode)
        context = PipelineContext(
            mode=mode,
            pipeline=pipeline_params,
            data=self.params,
            processors=self.processors(pipeline_params),
            collator=Collator(*self.batch_specs(), self.padding_values(), mode, generator.whole_batches),
            source=source,
            seed=seed,
            generator=generator,
        )
        transformation = None
        if self.transforms_batches:
            from scena.data.tensorflow.transform import Transformation

            transformation = Transformation(self, mode, self.batch_specs(), seed)
        return self._pipeline(context, transformation)

    def _pipeline(self, context: PipelineContext, transformation: "Transformation | None") -> DataPipeline:
        return DataPipeline(context, transformation)

    def get_or_create_pipeline(self, mode: PipelineMode, pipeline_params: DataPipelineParams, source: Any, *,
                               seed: int = 0) -> DataPipeline:  # fmt: skip
        """As `create_pipeline`, but the same arguments give the same pipeline again."""
        named = complete_repr(source) if isinstance(source, Params) else id(source)
        key = (mode, complete_repr(pipeline_params), named, seed)
        if key not in self._pipelines:
            self._pipelines[key] = self.create_pipeline(mode, pipeline_params, source, seed=seed)
        return self._pipelines[key]

    def create_post_proc(self, mode: PipelineMode, pipeline_params: DataPipelineParams | None = None) -> SamplePipeline:
        """The processors after the model; `apply(samples)` runs them."""
        return SamplePipeline(self.params.post_proc, pipeline_params or DataPipelineParams(), self.params, mode)


def _specs(given: dict[str, Any]) -> dict[str, ArraySpec]:
    return {name: ArraySpec.of(spec) for name, spec in given.items()}
