"""Wrong command lines and files: each is refused with a short message that names what is wrong, and leaves nothing behind.

`python -m tests.reliability.bad_inputs --count 1000` takes that many of all cases: each flag of each command with values that are wrong
for its type, each file with each kind of wrong or malicious content. Each runs in a forked process that stops where TensorFlow or
another process would be started; what gets that far is run once more in a process that has TensorFlow. `--show 30` prints messages.
"""

import argparse
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from scena.commands.main import command_name, find_command
from scena.commands.main import main as scena
from scena.display import visible
from scena.errors import ScenaError
from scena.params import parse_options
from scena.params.cli.command_line import current_tree, is_flag, takes_many
from scena.params.declare import FlagValue
from scena.params.kinds import peel
from scena.params.settable import Index, Node
from scena.params.tree import default_raw
from tests.reliability.bad_files import CONTENTS, FILES, RUN_FILES, write_good_files, write_run
from tests.zygote import Zygote

SMALL = "--trainer.epochs 1 --train.limit 32 --val.limit 16"
BASES = [
    f"train examples.tutorial.min --trainer.output_dir new {SMALL}",
    f"train examples.tutorial.full --trainer.output_dir new {SMALL}",
    f"train classification --trainer.output_dir new {SMALL}",
    "resume run",
    f"launch --workers 2 train examples.tutorial.min --trainer.output_dir new {SMALL}",
    "lr-find examples.tutorial.min",
    "tune examples.tutorial.min --search learning_rate.lr=0.1,0.2 --output new",
    "cv examples.tutorial.min --folds 3 --output new",
    "experiment sheet.csv --output new",
    "lav run",
    "predict run",
    "serve run",
    "export run --format saved_model",
    "adapt run --out new",
    "import-checkpoint weights examples.tutorial.min --out new",
    "records write --images images --output new --name n",
    "records convert examples.tutorial.min --output new",
    "records info images.tfrecord",
    "records preview examples.tutorial.min --plot new.png",
    "benchmark-input examples.tutorial.min",
    "data-service",
    "runs run",
    "compare dump.jsonl dump.jsonl",
    "verify run",
    "track run",
    "evaluate-dump dump.jsonl",
    "new new",
    "params examples.tutorial.min",
    "sets params.yaml",
    "schema examples.tutorial.min",
    "zoo AlexNet",
    "devices",
    "completion bash",
]
NEEDS_RUN = {"run", "dump.jsonl"}
OUTPUT = "new"
LATE = {"tensorflow", "keras", "jax", "ray"}
LATE_STATUS = 99
MESSAGE = r"^(scena.*: |damaged  |run  )"
"""How a message begins; `verify` and `track` print a table, with a line for each file or run."""
LONGEST = 1500
"""Characters of a message; the longest ones list what can be chosen."""


class Case(NamedTuple):
    """A command that has to fail."""

    words: list[str]
    about: tuple[str, ...]
    """The message holds at least one of these."""
    group: str
    setup: tuple[str, str] | None = None
    """A file to make, and its content in `CONTENTS`; all beginning with `run/` belong to a copy of the run."""

    @property
    def line(self) -> str:
        return " ".join(self.words)


class Outcome(NamedTuple):
    """What a command did."""

    status: int
    text: str
    late: str
    """What it wanted to load or start, if it got so far."""
    left: list[str]
    """Files that were not there before."""


# ---- cases -----------------------------------------------------------------------------------------------------------


def all_cases(with_run: bool = True) -> list[Case]:
    """All of them, in the current folder, which holds the good files; or those that need no run there."""
    cases = [case for base in bases(with_run) for case in (*_flag_cases(base), *_word_cases(base))]
    for template, kinds in FILES:
        if not with_run and NEEDS_RUN & set(template.split()):
            continue
        for kind in kinds:
            name = f"bad{Path(template.partition('{')[2].partition('}')[0]).suffix}"
            words = re.sub(r"\{[^}]*\}", name, template).split()
            cases.append(
                Case(words, (name, "nosuch", "None of the 2 images"), f"file: {template.split()[0]}", (name, kind))
            )
    for template, files in RUN_FILES if with_run else []:
        for name, kinds in files.items():
            cases += [
                Case(template.split(), ("run", name), f"file of a run: {template.split()[0]}", (f"run/{name}", kind))
                for kind in kinds
            ]
    return cases


def bases(with_run: bool) -> list[str]:
    """Good command lines."""
    return [base for base in BASES if with_run or not NEEDS_RUN & set(base.split())]


def _word_cases(base: str) -> Iterator[Case]:
    """Misspelled commands, stray words, missing and unknown arguments."""
    name, rest = command_name(base.split())
    command = name.split()
    yield Case([f"{name}x"], (f"{name}x",), "command")
    yield Case([*command, "--nosuchflag", "1", *rest], ("nosuchflag", " first: "), "unknown flag")
    yield Case([*base.split(), "--nosuch.flag=1"], ("nosuch",), "unknown flag")
    yield Case([*command, *rest, "--", "x"], ("'--'", "'x'", "-- x", "unexpected"), "stray word")
    if rest and not is_flag(rest[0]) and name not in ("new", "runs", "zoo"):
        yield Case(
            [*command, *rest[1:]],
            (find_command(name).positional()[0].positional.lower().replace("|", " or "),),
            "missing",
        )
        for wrong in ("nosuch", "", "a\0b", "ünïcode\u202e", "x" * 5000, "\udcff", "../../..", "/dev/null", "-"):
            yield Case(
                [*command, wrong, *rest[1:]],
                (visible(wrong)[:20], repr(wrong)[1:20]) if wrong else ("''", " first: "),
                "argument",
            )


def _flag_cases(base: str) -> Iterator[Case]:
    words = base.split()
    name, rest = command_name(words)
    for node in _nodes(name, rest):
        flag = f"--{node.name}"
        short = node.name.rpartition(".")[2]

        def case(*more: str) -> Case:
            own = [*name.split(), *more, *rest] if name == "launch" else [*words, *more]
            return Case(own, (node.name, short, *map(repr, more[1:])), f"flag of {name}")  # noqa: B023

        for value in _wrong_values(node):
            yield case(flag, *value)
        if not _may_be_empty(node):
            yield case(flag)
        yield case(f"{flag}x", "1")


def _may_be_empty(node: Node) -> bool:
    """Whether the flag may stand alone."""
    if node.kind.form != "leaf":
        return node.kind.form != "params"
    return takes_many(node.hint) or bool in peel(node.hint)[0]


def _nodes(name: str, words: list[str]) -> list[Node]:
    """The flags of a command in the selection of these words."""
    cls = find_command(name)
    options = cls.options_class()
    found = [node for node in Index(default_raw(options), options).nodes if not node.field.positional]
    own, _ = cls.split(words)
    given, rest = parse_options(options, own, partial=True)
    root = cls.opened(given, words).root()
    if root is not None:
        tree = current_tree(root, rest)
        found += Index(tree.raw, tree.cls).nodes
    return [node for node in found if not node.hidden]


def _wrong_values(node: Node) -> Iterator[tuple[str, ...]]:
    """Words that this flag cannot take."""
    if node.kind.form != "leaf":
        yield ("NoSuchClass",)
        if node.name != "learning_rate":  # a number is the rate of the schedule
            yield ("7",)
        return
    alternatives = peel(node.hint)[0]
    inner = {_plain(one) for one in alternatives}
    if str in inner or Any in inner or any(isinstance(one, type) and issubclass(one, os.PathLike) for one in inner):
        return  # any text is right as such
    yield ("no such value",)
    yield ("",)
    if inner <= {int, float}:
        yield from (("nan",), ("1e400",), ("-" + "9" * 30,)) if float not in inner else (("½",), ("1e400",))
        yield ("1", "2", "x")
    if inner == {int}:
        yield ("1.5",)
        yield ("9" * 30,)
    if inner == {bool}:
        yield ("2",)
    if any(isinstance(one, type) and issubclass(one, FlagValue) for one in inner):
        yield ("-1",)
        yield ("1e99steps",)


def _plain(hint: Any) -> Any:
    import typing

    origin = typing.get_origin(hint)
    if origin in (list, tuple, dict):
        arguments = [one for one in typing.get_args(hint) if one is not ...]
        return _plain(peel(arguments[-1])[0][0]) if arguments and peel(arguments[-1])[0] else Any
    return hint


# ---- running ---------------------------------------------------------------------------------------------------------


def attempt(case: Case) -> Outcome:
    """Runs a command in a process of its own, in the current folder, and clears away what it leaves."""
    with prepared(case) as before:
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reader)
            _child(case.words, writer)
        os.close(writer)
        with os.fdopen(reader, "rb") as pipe:
            data = pipe.read().decode(errors="replace")
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        text, _, late = data.partition("\0late\0")
        return Outcome(status, text, late, left_behind(before))


class prepared:  # noqa: N801  (used like a function)
    """Makes the file of a case, and removes it and everything else that is new afterwards."""

    def __init__(self, case: Case) -> None:
        self.case = case

    def __enter__(self) -> dict[str, tuple[int, int]]:
        self.before = snapshot()
        if self.case.setup is not None:
            name, kind = self.case.setup
            if name.startswith("run/"):
                shutil.copytree("run", ".kept", copy_function=os.link)
            path = Path(name)
            if path.is_file():
                path.unlink()  # a link to the kept one
            CONTENTS[kind](path)
        return snapshot()

    def __exit__(self, *_: object) -> None:
        if Path(".kept").exists():
            shutil.rmtree("run")
            Path(".kept").rename("run")
        for name in sorted(snapshot().keys() - self.before.keys(), reverse=True):
            path = Path(name)
            path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()


def snapshot() -> dict[str, tuple[int, int]]:
    """The files below the current folder with their sizes and times."""
    found = {}
    for folder, folders, files in os.walk("."):
        for name in (*folders, *files):
            state = os.lstat(path := os.path.join(folder, name))
            found[path] = (0, 0) if name in folders else (state.st_size, state.st_mtime_ns)
    return found


def left_behind(before: dict[str, tuple[int, int]]) -> list[str]:
    """What is new or changed; an empty folder that the command was told to write to does no harm."""
    after = snapshot()
    parents = {os.path.dirname(name) for name in after}
    new = [name for name, state in after.items() if before.get(name) != state]
    return [name for name in new if name != f"./{OUTPUT}" or name in parents or os.path.isfile(name)]


def _child(words: list[str], writer: int) -> NoReturn:
    status = 1
    try:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(writer, 1)
        os.dup2(writer, 2)
        signal.setitimer(signal.ITIMER_PROF, 60)  # of processor time
        sys.addaudithook(_stop_late)
        status = scena(words)
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _stop_late(event: str, arguments: tuple[Any, ...]) -> None:
    late = ""
    if event == "import" and arguments[0] in LATE:
        late = arguments[0]
    elif event in ("subprocess.Popen", "os.posix_spawn", "os.fork", "socket.bind"):
        late = event
    if late:
        sys.stdout.flush()
        sys.stderr.flush()
        os.write(1, f"\0late\0{late}".encode())
        os._exit(LATE_STATUS)


def problem(case: Case, outcome: Outcome) -> str:
    """What is wrong with how a case was refused; empty if nothing is."""
    text = outcome.text
    if "Traceback" in text:
        return "a traceback"
    if outcome.status == 0:
        return "accepted"
    if outcome.status not in (1, 2):
        return f"status {outcome.status}"
    message = text.strip()
    if not re.search(MESSAGE, message, re.M):
        return "no message"
    if len(message) > LONGEST:
        return f"{len(message)} characters"
    if not any(word in message for word in case.about):
        return f"names none of {case.about}"
    if Path("executed").exists():
        return "executed"
    if outcome.left:
        return f"left behind: {outcome.left[:5]}"
    return ""


def attempt_late(zygote: Zygote, case: Case, log: Path) -> Outcome:
    """Runs a case in a process that has TensorFlow."""
    log.unlink(missing_ok=True)
    with prepared(case) as before:
        child = zygote.start(*case.words, log=log, folder=Path.cwd())
        status = child.wait()
        return Outcome(status, child.text, "", left_behind(before))


def sampled(cases: list[Case], count: int, seed: int) -> list[Case]:
    """That many, of all groups alike."""
    rng = random.Random(seed)
    groups: dict[str, list[Case]] = {}
    for case in rng.sample(cases, len(cases)):
        groups.setdefault(case.group, []).append(case)
    chosen: list[Case] = []
    while len(chosen) < min(count, len(cases)):
        for group in groups.values():
            if group and len(chosen) < count:
                chosen.append(group.pop())
    return chosen


def import_commands(with_run: bool) -> None:
    """Imports what commands need, so that each forked process has it."""
    for base in bases(with_run):
        name, rest = command_name(base.split())
        try:
            _nodes(name, rest)
        except ScenaError as error:
            raise AssertionError(f"{base}: {error}") from error


def main() -> int:
    """Runs cases and prints what is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--late", type=int, default=60, help="how many of those that need TensorFlow are run with it")
    parser.add_argument("--show", type=int, default=0, help="print this many messages")
    parser.add_argument("--match", default="", help="only cases whose command line holds this")
    parser.add_argument("--without_run", action="store_true", help="only cases that need no trained run")
    parser.add_argument("--good", type=Path, help="the folder of good files; it is filled if it does not exist")
    options = parser.parse_args()
    home = Path.cwd()
    with tempfile.TemporaryDirectory(prefix="scena-bad-") as folder:
        good, work = options.good or Path(folder) / "good", Path(folder) / "work"
        if not good.exists():
            good.mkdir()
            write_good_files(good)
            if not options.without_run:
                zygote = Zygote.started()
                write_run(zygote, good, Path(folder) / "log")
                zygote.close()
        shutil.copytree(good, work)
        os.chdir(work)
        try:
            return _campaign(options, Path(folder) / "log")
        finally:
            os.chdir(home)


def _campaign(options: argparse.Namespace, log: Path) -> int:
    import_commands(not options.without_run)
    assert not LATE & set(sys.modules), f"{LATE & set(sys.modules)} are here already"
    cases = [case for case in all_cases(not options.without_run) if options.match in case.line]
    chosen = sampled(cases, options.count, options.seed)
    rng = random.Random(options.seed)
    shown = set(rng.sample(range(len(chosen)), min(options.show, len(chosen))))
    late, wrong, malicious = [], Counter[str](), 0
    early = 0

    def judge(case: Case, outcome: Outcome, when: str) -> None:
        found = problem(case, outcome)
        if found:
            wrong[found.partition(":")[0]] += 1
            print(
                f"WRONG ({found}{when}): scena {case.line[:300]!r} {case.setup or ''}\n    {outcome.text[-700:].strip()!r}",
                flush=True,
            )

    for number, case in enumerate(chosen):
        outcome = attempt(case)
        malicious += case.setup is not None and case.setup[1].startswith("malicious")
        if outcome.late:
            late.append(case)
            continue
        early += 1
        judge(case, outcome, "")
        if number in shown:
            print(f"scena {case.line[:200]!r} {case.setup or ''}\n    {outcome.text.strip()}", flush=True)
    groups = Counter(case.group for case in late)
    print(
        f"{len(chosen)} of {len(cases)} cases, {malicious} malicious: {early} refused before TensorFlow, {len(late)} not: {dict(groups)}"
    )
    tried = rng.sample(late, min(options.late, len(late)))
    zygote = Zygote.started() if tried else None
    for case in tried:
        assert zygote is not None
        outcome = attempt_late(zygote, case, log)
        judge(case, outcome, ", late")
        if options.show:
            print(
                f"late: scena {case.line[:200]!r} {case.setup or ''}: {outcome.status}\n    {outcome.text.strip()[-400:]}",
                flush=True,
            )
    print(f"{early + len(tried)} refused, {wrong.total()} wrong: {dict(wrong)}")
    return bool(wrong)


if __name__ == "__main__":
    raise SystemExit(main())
