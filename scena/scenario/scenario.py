"""`ScenarioBase`: holds together data, model, training, evaluation and prediction, and creates each of them.

Everything heavy is imported when it is created, so that the command line can read a scenario's parameters at once.
"""

import os
import types
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeAlias, TypeVar, cast

from scena.data.params import DataGeneratorParams, tell_of_rules
from scena.evaluation.params import LAVParams
from scena.model.announced import announce, import_models
from scena.overriding import Overridable
from scena.params import Params, ParamsError, build, check, to_raw
from scena.params.annotations import concrete, type_argument
from scena.params.declare import UNSET
from scena.prediction.params import PredictorParams, VoterParams
from scena.scenario.params import ScenarioBaseParams, TData, TModel
from scena.storage.run_layout import EXPORT_FILE, PARAMS_FILE
from scena.training.params import TrainerParams
from scena.training.pipelines import TrainerPipelineParamsBase

if TYPE_CHECKING:
    from scena.data.database import DataBase
    from scena.data.sample import Arrays
    from scena.evaluation.evaluator import Evaluator, LAVCallback
    from scena.evaluation.lav import LAV
    from scena.evaluation.multi import MultiLAV
    from scena.model.built import BuiltModel
    from scena.model.model import ModelBase
    from scena.prediction.params import ExportFormatParams, RuntimeParams
    from scena.prediction.predictor import Predictor
    from scena.prediction.runtimes.base import UnbuiltModel
    from scena.prediction.voting import MultiModelPredictor, Voter
    from scena.scenario.stored import LoadedExport
    from scena.scenario.verifying import ExportCheck
    from scena.storage.code_fingerprints import Fingerprints
    from scena.training.trainer import Trainer

Export: TypeAlias = "str | Path | LoadedExport"
"""A run's `best` or `export` directory, or one that was opened before."""

TScenarioParams = TypeVar("TScenarioParams", bound=ScenarioBaseParams[Any, Any])
TPipelines = TypeVar("TPipelines", bound=TrainerPipelineParamsBase)

_VARIABLES: list[Any] = [TScenarioParams, TPipelines]


class ScenarioBase(Overridable, Generic[TScenarioParams, TPipelines]):
    """A task to learn. A subclass names its parameters: `class Digits(ScenarioBase[DigitsParams, DigitsPipelines])`.

    Args:
        params: data, model and evaluator parameters.
    """

    predict_source: ClassVar[type[DataGeneratorParams] | None] = None
    """What `scena predict` reads by default; None: the run's validation source."""
    trainer_params: ClassVar[type[TrainerParams[Any, Any]]] = TrainerParams
    """The parameters of a training; they build the trainer. The three below do the same for LAV, the predictor and the voter."""
    lav_params: ClassVar[type[LAVParams]] = LAVParams
    predictor_params: ClassVar[type[PredictorParams]] = PredictorParams
    voter_params: ClassVar[type[VoterParams]] = VoterParams

    __trainer_params__: ClassVar[type[TrainerParams[Any, Any]] | None] = None

    def __init__(self, params: TScenarioParams) -> None:
        self.params = params

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        announce(lambda: import_models(cls._argument(0)().model))

    # ---- parameters ----------------------------------------------------------------------------------------------

    @classmethod
    def name(cls) -> str:
        """How this scenario is named on the command line: `package.module:Class`."""
        return f"{cls.__module__}:{cls.__qualname__}"

    @classmethod
    def _argument(cls, index: int) -> Any:
        """The parameter class that a subclass of this generic class named at this index."""
        return concrete(type_argument(cls, _VARIABLES[index]))

    @classmethod
    def default_params(cls) -> TScenarioParams:
        """The scenario's own parameters as they are before files and flags; the data's are those of its `default_params`."""
        params = cls._argument(0)()
        if params.data is None:
            raise ParamsError(
                f"{cls.__name__} does not say what its parameters are: class {cls.__name__}(ScenarioBase[MyParams, MyPipelines])."
            )
        data = type(params.data)
        if type(params).__params__["data"].default is UNSET and (initial := data.__initial__()) != data():
            params = cls._argument(0)(data=initial)
        return cast(TScenarioParams, params)

    @classmethod
    def default_pipelines(cls) -> TPipelines:
        """Where training and validation data come from, before files and flags."""
        return cast(TPipelines, cls._argument(1)())

    @classmethod
    def trainer_params_cls(cls) -> type[TrainerParams[TScenarioParams, TPipelines]]:
        """The class of this scenario's trainer parameters."""
        if "__trainer_params__" not in cls.__dict__:
            own, generic = cls.trainer_params, cast(Any, TrainerParams)[cls._argument(0), cls._argument(1)]
            names = {"__module__": own.__module__, "__doc__": own.__doc__}
            cls.__trainer_params__ = (
                concrete(generic)
                if own is TrainerParams
                else types.new_class(own.__name__, (own, generic), {}, lambda body: body.update(names))
            )
        return cast(type[TrainerParams[TScenarioParams, TPipelines]], cls.__trainer_params__)

    @classmethod
    def default_trainer_params(cls) -> TrainerParams[TScenarioParams, TPipelines]:
        """All parameters of a training of this scenario: change them and hand them to `create_trainer`."""
        return cls.trainer_params_cls()(scenario=cls.default_params(), gen=cls.default_pipelines())

    @classmethod
    def default_predict_source(cls, pipelines: TPipelines) -> DataGeneratorParams | None:
        """What `scena predict` reads by default. Override it if `predict_source` depends on where the training data came from."""
        return cls.predict_source() if cls.predict_source is not None else pipelines.val_gen()

    # ---- parts; override to change what is created ----------------------------------------------------------------

    def create_data(self) -> "DataBase[Any]":
        """Creates the data."""
        return cast("DataBase[Any]", self.params.data.create(**self.data_kwargs()))

    def create_model(self, data: Any) -> "ModelBase[Any]":
        """Creates the model for the data."""
        return cast("ModelBase[Any]", self.params.model.create(**self.model_kwargs(data)))

    def create_evaluator(self, data: Any) -> "Evaluator[Any]":
        """Creates the evaluator that LAV feeds with post-processed samples."""
        return self.evaluator_cls()(self.params.evaluator, **self.evaluator_kwargs(data))

    def build(self) -> "BuiltModel":
        """Creates data, model and graph, with all variables."""
        from scena.model.built import BuiltModel
        from scena.model.debugging import explaining_graph

        data = self.create_data()
        model = self.create_model(data)
        with explaining_graph(f"The graph of {type(model).__name__}"):
            root = model.create_root_graph(self.root_graph_kwargs(data), **self.graph_kwargs(data))
        return BuiltModel(data, model, root)

    def check_graph(self, pipelines: TPipelines) -> None:
        """Runs graph, losses and metrics once on a real batch, op by op, with messages that name what is wrong."""
        from scena.model.building import traceable
        from scena.model.debugging import check_on_real_data

        data = self.create_data()
        model = self.create_model(data)
        root = model.create_root_graph(self.root_graph_kwargs(data), **self.graph_kwargs(data))
        with pipelines.train_data(data).stream(repeat=False) as batches:
            batch = next(iter(batches))
        with traceable(root):
            check_on_real_data(model, root, batch.inputs, batch.targets)

    # Classes of parts, as tfaip names them; by default what the parameters of the part build.

    def evaluator_cls(self) -> "type[Evaluator[Any]]":
        """The class of the evaluator."""
        return type(self.params.evaluator).implementation()

    @classmethod
    def trainer_cls(cls) -> "type[Trainer]":
        """The class of the trainer."""
        return cls.trainer_params_cls().implementation()

    @classmethod
    def lav_cls(cls) -> "type[LAV]":
        """The class of LAV."""
        return cls.lav_params.implementation()

    @classmethod
    def multi_lav_cls(cls) -> "type[MultiLAV]":
        """The class of the LAV that validates several models in one pass."""
        from scena.evaluation.multi import MultiLAV

        return MultiLAV

    @classmethod
    def predictor_cls(cls) -> "type[Predictor]":
        """The class of the predictor."""
        return cls.predictor_params.implementation()

    @classmethod
    def multi_predictor_cls(cls) -> "type[MultiModelPredictor]":
        """The class of the predictor in which several models vote."""
        from scena.prediction.voting import MultiModelPredictor

        return MultiModelPredictor

    # ---- static parameters: what one part hands to another; annotate `data` with your own data class ------------------

    def data_kwargs(self) -> dict[str, Any]:
        """More arguments for the data's constructor."""
        return {}

    def model_kwargs(self, data: Any) -> dict[str, Any]:
        """More arguments for the model's constructor, for example the size of the data's codec."""
        return {}

    def graph_kwargs(self, data: Any) -> dict[str, Any]:
        """More arguments for the model's `create_graph`."""
        return {}

    def root_graph_kwargs(self, data: Any) -> dict[str, Any]:
        """More arguments for the constructor of the model's `root_graph_cls`."""
        return {}

    def evaluator_kwargs(self, data: Any) -> dict[str, Any]:
        """More arguments for the evaluator's constructor."""
        return {}

    def voter_kwargs(self, data: Any) -> dict[str, Any]:
        """More arguments for the voter's constructor."""
        return {}

    def lav_kwargs(self, data: Any) -> dict[str, Any]:
        """More arguments for the constructor of LAV."""
        return {}

    def predictor_kwargs(self, data: Any) -> dict[str, Any]:
        """More arguments for the predictor's constructor."""
        return {}

    # ---- what a user asks for -----------------------------------------------------------------------------------------

    @classmethod
    def create_trainer(cls, params: TrainerParams[TScenarioParams, TPipelines]) -> "Trainer":
        """A trainer for these parameters; `.train()` runs it.

        Raises:
            ParamsError: a value is wrong, as the command line would say it.
        """
        cls.check_params(params)
        scenario = cls(params.scenario)
        scenario.evaluator_cls()  # a misspelt `builds=` of it, or of the voter, would only show after the training
        cls.voter_params.implementation()
        return cls.trainer_cls()(params, scenario)

    @classmethod
    def check_params(cls, params: TrainerParams[TScenarioParams, TPipelines]) -> None:
        """Checks trainer parameters that were set from Python: their classes, and each value.

        Raises:
            ParamsError: a value is wrong, as the command line would say it.
        """
        for index, name in enumerate(("scenario", "gen")):
            expected, received = cls._argument(index), getattr(params, name, None)
            if not isinstance(received, expected):
                raise ParamsError(
                    f"{cls.__name__}.create_trainer expects trainer parameters whose {name} is {expected.__name__}, as "
                    f"{cls.__name__}.default_trainer_params() gives them. Received: {type(received).__name__} "
                    f"in {type(params).__name__}."
                )
        check(params)

    def store(self, directory: Path, trainer_params: Params) -> None:
        """Writes the parameters of a run into its directory."""
        from scena.scenario.stored import describe, write_description
        from scena.training.directory import run_identity

        identity = run_identity(directory) or os.urandom(8).hex()
        write_description(directory / PARAMS_FILE, describe(type(self), trainer_params, run=identity))

    def export(
        self,
        built: "BuiltModel",
        directory: Path,
        trainer_params: Any,
        *,
        saved_model: bool = True,
        check: Callable[[Path], None] | None = None,
        **more: Any,
    ) -> None:
        """Writes the model with all that a prediction needs; the directory appears as a whole and can be moved.

        Args:
            built: the model in memory.
            directory: the export directory to write or to replace.
            trainer_params: all parameters of the run, or those of another export.
            saved_model: also write TensorFlow's SavedModel (it can be added later with `complete_export`).
            check: called with the directory before it is put in place; what it raises keeps the export from appearing.
            more: what else to note in `scenario.json`, for example the results.
        """
        from scena.scenario.exporting import write_export
        from scena.scenario.stored import ExportParams

        params = ExportParams.of(trainer_params) if isinstance(trainer_params, Params) else trainer_params
        if "code" not in more:
            more["code"] = self.code([params.scenario, params.pipelines])
        write_export(type(self), built, directory, params, saved_model=saved_model, check=check, **more)

    def code(self, params: Any) -> "Fingerprints":
        """Fingerprints of the code of this scenario and of the classes in `params`; exports and checkpoints store them."""
        from scena.scenario.stored import modules_of
        from scena.storage.code_fingerprints import fingerprint

        return fingerprint(type(self).__module__, modules_of(params))

    def complete_export(
        self,
        built: "BuiltModel",
        directory: Path,
        check: Callable[[Path], None] | None = None,
        formats: "Sequence[ExportFormatParams]" = (),
        inputs: "Callable[[], Arrays] | None" = None,
    ) -> None:
        """Adds what an export lacks: the SavedModel, and the model in other formats, verified on `inputs`."""
        from scena.scenario.exporting import complete_export

        complete_export(built, directory, check, formats, inputs)

    def link_saved_models(self, built: "BuiltModel", directory: Path, other: Path) -> None:
        """Gives an export that lacks its SavedModels those of another one, if their parameters and weights are equal."""
        from scena.scenario.exporting import link_saved_models

        link_saved_models(built, directory, other)

    def create_export_check(self, built: "BuiltModel", trainer_params: Any) -> "ExportCheck":
        """What compares exports with the model in memory."""
        from scena.scenario.verifying import ExportCheck

        return ExportCheck(type(self), built, trainer_params.precision)

    def initialise(self, built: "BuiltModel", trainer_params: Any) -> None:
        """Called when a new training starts, before a warm start: set first weights here. The default does nothing.

        A resumed training does not call it, since its checkpoint has the weights.
        """

    def read_weights(self, directory: Path) -> list[tuple[str, Any]]:
        """The weights of an export, of this scenario or of another one on the path, for a warm start."""
        from scena.scenario.finding import scenario_of
        from scena.scenario.stored import load_export, read_description

        stored = str(read_description(directory / EXPORT_FILE)["scenario"])
        other = type(self) if stored == self.name() else scenario_of(stored, directory)
        loaded = load_export(directory, other)
        loaded.code_compared = True  # weights are only read: what the old code made of them does not matter
        built = loaded.build()
        return [(weight.path, weight.numpy()) for weight in built.root.weights]

    def create_training_lav(self, built: "BuiltModel", trainer_params: Any) -> "LAV":
        """LAV of the model that is being trained, with the batches of the validation."""
        params = self.lav_params(
            pipeline=trainer_params.gen.val,
            print_limit=self.params.print_eval_limit,
            check_labels=trainer_params.sanity_check,
        )
        return self.create_lav_for(built, params)

    def create_lav_for(
        self,
        built: "BuiltModel | UnbuiltModel",
        params: LAVParams,
        network: "Callable[[], BuiltModel] | None" = None,
    ) -> "LAV":
        """LAV of a model that is in memory, as during training.

        Args:
            built: the model.
            params: batch size and so on.
            network: builds it in Keras, for losses and metrics of a model that another runtime opened.
        """
        lav = self.lav_cls()(params, built, self.create_evaluator(built.data), **self.lav_kwargs(built.data))
        lav.network = network
        lav.callbacks = [*lav.callbacks, *self.lav_callbacks()]
        return lav

    def lav_callbacks(self) -> "list[LAVCallback]":
        """What accompanies each LAV of this scenario, in training and afterwards. The default has none."""
        return []

    @classmethod
    def create_lav(cls, export_dir: Export, params: LAVParams | None = None) -> "LAV":
        """LAV of an exported model; `.run(source)` validates it.

        Args:
            export_dir: a run's `best` or `export` directory.
            params: batch size, device and so on.
        """
        from scena.scenario.stored import opened

        params = check(params or cls.lav_params())
        loaded = opened(export_dir, cls)
        tell_of_rules(loaded.rules, str(loaded.directory))
        _select([loaded], params)
        params = loaded.with_processing(params)
        return loaded.scenario.create_lav_for(loaded.open(params), params, network=loaded.build)

    @classmethod
    def create_multi_lav(cls, export_dirs: Sequence[Export], params: LAVParams | None = None) -> "MultiLAV":
        """LAV of several exported models in one pass, each on its own and all together by vote.

        Args:
            export_dirs: the models; all must prepare their inputs in the same way.
            params: batch size, device and so on.
        """
        from scena.data.params import PipelineMode
        from scena.prediction.voting import check_same_inputs
        from scena.scenario.ensemble import with_members
        from scena.scenario.stored import compare_code, opened

        params = check(params or cls.lav_params())
        exports = [opened(one, cls) for one in with_members(export_dirs)]
        _select(exports, params)
        compare_code(exports)
        for export in exports:
            tell_of_rules(export.rules, str(export.directory))
        check_same_inputs(exports, PipelineMode.EVALUATION)
        params = exports[0].with_processing(params)
        lavs = {
            str(export.directory): export.scenario.create_lav_for(export.open(params), params, network=export.build)
            for export in exports
        }
        scenario, first = exports[0].scenario, next(iter(lavs.values()))
        predictors = [
            export.scenario.create_predictor_for(lav.built, cls.predictor_params(run_eagerly=params.run_eagerly))
            for export, lav in zip(exports, lavs.values(), strict=True)
        ]
        voter = scenario.create_multi_predictor(predictors, cls.predictor_params())
        evaluator = scenario.create_evaluator(first.built.data)
        return cls.multi_lav_cls()(lavs, voter.vote, evaluator, first.measures_of_vote(scenario.create_model))

    def create_predictor_for(self, built: "BuiltModel | UnbuiltModel", params: PredictorParams) -> "Predictor":
        """A predictor of a model that is in memory."""
        return self.predictor_cls()(params, built, **self.predictor_kwargs(built.data))

    @classmethod
    def create_predictor(
        cls,
        export_dir: "Export | Sequence[Export]",
        params: PredictorParams | None = None,
        *,
        runtime: "str | RuntimeParams | None" = None,
    ) -> "Predictor":
        """A predictor of one exported model, or of several that vote.

        Args:
            export_dir: a run's `best` or `export` directory, an ensemble, or several of them.
            params: batch size, device and so on.
            runtime: what runs the model (a name: keras, onnx, openvino, litert or auto), instead of `params.runtime`.
        """
        from scena.data.params import PipelineMode
        from scena.prediction.voting import check_same_inputs
        from scena.scenario.ensemble import with_members
        from scena.scenario.stored import compare_code, opened

        params = check(params or cls.predictor_params())
        if isinstance(runtime, str):
            params = build({**to_raw(params), "runtime": {"class": runtime}}, type(params))
        elif runtime is not None:
            params = params.replace(runtime=runtime)
        single = isinstance(export_dir, str) or not isinstance(export_dir, Sequence)
        several: Any = [export_dir] if single else export_dir
        exports = [opened(one, cls) for one in with_members(several)]
        compare_code(exports)
        _select(exports, params)
        params = exports[0].with_processing(params)
        predictors = [export.scenario.create_predictor_for(export.open(params), params) for export in exports]
        if single and len(exports) == 1:
            return predictors[0]
        check_same_inputs(exports, PipelineMode.PREDICTION)
        return exports[0].scenario.create_multi_predictor(predictors, params)

    def create_voter(self, data: "DataBase[Any]") -> "Voter[Any]":
        """What combines the outputs of several models. It needs no Keras."""
        return cast("Voter[Any]", self.voter_params().create(**self.voter_kwargs(data)))

    def create_multi_predictor(
        self, predictors: "Sequence[Predictor]", params: PredictorParams
    ) -> "MultiModelPredictor":
        """A predictor in which several models vote."""
        made = self.multi_predictor_cls()(params, predictors)
        made.voter = self.create_voter(made.data)
        return made


class Scenario(ScenarioBase[ScenarioBaseParams[TData, TModel], TPipelines], Generic[TData, TModel, TPipelines]):
    """A scenario without parameters of its own beside data and model: `class Digits(Scenario[DataParams, ModelParams, Pipelines])`."""


def _select(exports: "Sequence[LoadedExport]", params: PredictorParams | LAVParams) -> None:
    """Selects the devices of Keras, if it is needed for one of the models."""
    if any(export.needs_keras(params) for export in exports):
        from scena.backends.base import backend

        backend().select_devices(params.device)
