"""What a command of `scena` is: one class declares it. Usage, help, errors and completion come from that declaration.

And the base of commands for a scenario; those for exported models have theirs in `model_command.py`.
"""

import os
import sys
import typing
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

from scena.errors import SKIP_HINT, DataError
from scena.params import Params, ParamsError, Parsed, param, parse, parse_options, root_of
from scena.params.cli.command_line import (
    CONFIG,
    FLAGS,
    is_flag,
    print_help,
    refuse_unknown,
    split,
    take_help,
    takes_many,
)
from scena.params.declare import Field

if TYPE_CHECKING:
    from scena.scenario.finding import AnyScenario

HEAVY = ("keras", "tensorflow")
PROJECT_FILE = "project.yaml"
"""The parameters of a project: read from the current folder by commands that start from a scenario's defaults."""


class NoOptions(Params):
    """For commands without options."""


class ImportOptions(Params):
    """`--import MODULE`: modules of the user's own whose classes can be chosen by name."""

    modules: list[str] = param([], flat="import", help="modules to import first, for example with graphs of your own")


class WorkOptions(ImportOptions):
    """What every command asks that builds a model."""

    trust: bool = param(
        False, help="load third-party SavedModels (--model.name hub) even if their graphs access files or run Python"
    )


class ScenarioOptions(ImportOptions):
    """The scenario."""

    scenario: str = param(
        required=True,
        positional="SCENARIO",
        help="a module or package that defines a scenario (package.module, or package.module:Class), a folder, or a .py file",
    )


class TrainingOptions(ScenarioOptions, WorkOptions):
    """The scenario of a command that builds its model."""


class Command:
    """A command. A subclass has a docstring, which `--help` shows, and declares:

    - `name`: what a user types after `scena`
    - `options`: annotated with a params class, whose fields are the flags, and with `positional="FILE"` the arguments
    - `root`: the parameters whose flags the command takes beside its options, if there are any
    - `run`: what it does, with `self.options` and `self.params`; returns the exit status if it is not 0

    An argument called SCENARIO, RUN or MODEL completes to scenarios, runs or exported models.
    """

    name: ClassVar[str]
    options: Params
    forwards: ClassVar[tuple[str, ...]] = ()
    """Commands whose whole command line can follow the options; `self.forwarded` holds it."""

    def __init__(self, options: Any, given: list[str]) -> None:
        self.options = options
        self.given = given
        """All words after the name of the command."""
        self.forwarded = self.split(given)[1]
        self.words: list[str] = []
        """The flags of the root as they were given."""
        self.parsed: Parsed[Any]
        """What the flags of the root stand for."""

    def root(self) -> Params | None:
        """The default parameters whose flags the command takes; None if it has its own options only."""
        return None

    def run(self) -> int | None:
        """Does the work."""
        raise NotImplementedError

    def description(self) -> str:
        """The first paragraph of `--help` once all arguments are given."""
        return self.about()

    def uses_project_file(self) -> bool:
        """Whether `project.yaml` of the current folder is read."""
        return False

    @property
    def params(self) -> Any:
        """The parameters of the root, as the flags set them."""
        return self.parsed.params

    # -------------------------------------------------------------------------------- what follows from the declaration

    @classmethod
    def call(cls, words: list[str], *, check_only: bool = False) -> int:
        """Runs the command with these words, or only reads them; returns its exit status."""
        own, _ = cls.split(words)
        own, search = take_help(own)
        asked = search is not None
        options, rest = parse_options(cls.options_class(), own, partial=True)
        missing = cls.missing(options)
        if missing is not None and search:  # `--help SCENARIO`
            own, search = [*search, *own], []
            options, rest = parse_options(cls.options_class(), own, partial=True)
            missing = cls.missing(options)
        if asked and missing is not None:
            usage = cls.usage().removesuffix(FLAGS)
            all_flags = f"`{usage}--help` lists all flags." if cls.root is not Command.root else ""
            about = "\n\n".join(filter(None, [cls.about(), *_found(missing), all_flags]))
            print_help(None, [], usage=cls.usage(), description=about, options=cls.options_class())
            return 0
        if missing is not None:
            named = missing.positional.replace("|", " or ")
            what = f"the {named.lower()}" if len(named) > 1 else named
            explained = f"{missing.positional} is {missing.help}."
            raise ParamsError("\n".join([f"name {what} first: {cls.usage()}. {explained}", *_found(missing)]))
        if not asked:
            options, rest = parse_options(cls.options_class(), own)
        command = cls.opened(options, words)
        if asked:
            print_help(
                command.root(),
                command.with_project_file(rest, announce=False),
                usage=command.usage(options),
                description=command.description(),
                options=type(options),
                search=search,
            )
            return 0
        command.read(rest)
        if check_only:
            return 0
        try:
            return command.run() or 0
        except DataError as error:
            if SKIP_HINT in str(error) and (flags := command.skip_flags()):
                error.add_note(f"The flag: {' or '.join(flags)}")
            raise

    def skip_flags(self) -> list[str]:
        """The flags that skip samples with errors."""
        names = self.parsed.origins if hasattr(self, "parsed") else ()
        return [f"--{name} skip" for name in names if name.rpartition(".")[2] == "on_error"]

    @classmethod
    def opened(cls, options: Any, given: list[str]) -> Self:
        """The command with these options, after the modules that they name have been imported."""
        if modules := getattr(options, "modules", None):
            from scena.scenario.finding import import_modules

            import_modules(modules)
        return cls(options, given)

    def read(self, words: list[str]) -> None:
        """Reads the flags of the root.

        Raises:
            ParamsError: one of them is wrong.
        """
        root = self.root()
        if root is None:
            refuse_unknown(words, type(self.options), self.usage())
            return
        self.words = self.with_project_file(words)
        self.parsed = parse(root, self.words, options=type(self.options))

    def with_project_file(self, words: list[str], announce: bool = True) -> list[str]:
        """The flags, and `--config project.yaml` if there is that file and no other was named; `--config None` skips it."""
        if not self.uses_project_file() or CONFIG in split(words, lenient=True) or not os.path.isfile(PROJECT_FILE):
            return words
        if words and not is_flag(words[0]):
            return words  # a stray word, which is an error of its own
        if announce:
            print(f"Using {PROJECT_FILE} of this folder; --config None skips it.", file=sys.stderr)
        return [f"--{CONFIG}", PROJECT_FILE, *words]

    @classmethod
    def split(cls, words: list[str]) -> tuple[list[str], list[str]]:
        """The words of this command, and the command line of the one that it forwards to."""
        start = next((i for i, word in enumerate(words) if word in cls.forwards), len(words))
        return words[:start], words[start:]

    @classmethod
    def options_class(cls) -> type[Params]:
        """The class of its options."""
        found: type[Params] = typing.get_type_hints(cls)["options"]
        return NoOptions if found is Params else found

    @classmethod
    def positional(cls) -> list[Field]:
        """Its arguments without a flag, in order."""
        return [field for field in cls.options_class().__params__.values() if field.positional]

    @classmethod
    def missing(cls, options: Params) -> Field | None:
        """The first required argument that was not given."""
        return next((field for field in cls.positional() if field.required and not getattr(options, field.name)), None)

    @classmethod
    def usage(cls, given: Params | None = None) -> str:
        """`scena train SCENARIO [--flag value …]`, with the given arguments in place of their names."""
        options = cls.options_class()
        words = ["scena", cls.name]
        for field in cls.positional():
            value = getattr(given, field.name, None)
            if value and (field.required or value != options.default_of(field)):
                words += map(str, value if isinstance(value, list) else [value])
            else:
                word = f"{field.positional}{'…' if takes_many(options.hints()[field.name]) else ''}"
                words.append(word if field.required else f"[{word}]")
        has_flags = cls.root is not Command.root or len(options.__params__) > len(cls.positional())
        return " ".join(
            [*words, *([FLAGS] if has_flags else []), *(["|".join(cls.forwards), "…"] if cls.forwards else [])]
        )

    @classmethod
    def about(cls) -> str:
        """Its docstring."""
        from inspect import cleandoc  # late: only help needs it

        return cleandoc(cls.__doc__ or "")

    @classmethod
    def named(cls, name: str) -> "type[Command] | None":
        """The command of this name among the classes that were imported; the last one, if a module was imported again."""
        return next((found for found in reversed(list(_subclasses(cls))) if vars(found).get("name") == name), None)

    # -------------------------------------------------------------------------------------------- what commands share

    def show_log(self) -> None:
        """Shows the log on the console."""
        from scena import logs  # late: `--help` does not need logging

        logs.set_up_console()

    def start(self, *, keras: bool = True) -> None:
        """Once all arguments are right: shows the log, loads TensorFlow unless the command does without, and notes what the user trusts."""
        if getattr(self.options, "trust", False):
            from scena.model.hub.inspect import trust_saved_models

            trust_saved_models()
        self.show_log()
        if keras:
            from scena.backends.quiet import load_tensorflow

            load_tensorflow()


class ScenarioCommand(Command):
    """A command for a scenario; its root has the scenario's default trainer parameters as `trainer`."""

    options: ScenarioOptions

    @cached_property
    def scenario(self) -> "AnyScenario":
        """The scenario that was named."""
        from scena.scenario.finding import find_scenario

        found = find_scenario(self.options.scenario)
        heavy = [name for name in HEAVY if name in sys.modules]
        if heavy and os.environ.get("SCENA_LOG_LEVEL", "").lower() == "debug":
            import logging

            self.show_log()
            logging.getLogger(__name__).debug(
                "%s imports %s at its top: --help would be faster without.", found.__module__, " and ".join(heavy)
            )
        return found

    def root(self) -> Params:
        """The parameters of a training."""
        return root_of(trainer=self.default_trainer())

    def default_trainer(self) -> Any:
        """The parameters that flags change."""
        return self.scenario.default_trainer_params()

    def uses_project_file(self) -> bool:
        """Parameters of the project hold for every command that starts from a scenario's defaults."""
        return True

    @property
    def trainer(self) -> Any:
        """The trainer's parameters, as the flags set them."""
        return self.params.trainer

    def check_training(self) -> None:
        """Finds what is wrong with the training before TensorFlow is loaded."""
        from scena.training.checks.before_start import check_before_start

        self.show_log()
        check_before_start(self.trainer, fresh=True)


def _subclasses(cls: type[Command]) -> Iterator[type[Command]]:
    for child in cls.__subclasses__():
        yield child
        yield from _subclasses(child)


def _found(field: Field) -> list[str]:
    """The scenarios that can be named, where one is missing."""
    if field.positional != "SCENARIO":
        return []
    from scena.scenario.finding import list_scenarios

    known = [f"  {name}" for name in list_scenarios()]
    return ["\n".join(["Scenarios found here:", *known]) if known else "No scenarios found here."]
