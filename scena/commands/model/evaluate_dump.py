"""`scena evaluate-dump FILE [--evaluator.…]`: the evaluator's results from a dump of `scena lav --dump`, without the model."""

from contextlib import ExitStack
from pathlib import Path
from typing import Any

from scena.commands.output import Results, print_results
from scena.commands.places import check_file
from scena.commands.scenario_argument import ImportOptions, import_modules, root_of, set_up_console
from scena.commands.usage import print_usage
from scena.params import ParamsError, param, parse, parse_options
from scena.scenario.finding import AnyScenario

USAGE = """usage: scena evaluate-dump FILE [--evaluator.…] [--json FILE]

Computes the results of the scenario's evaluator from targets and predictions that `scena lav --dump FILE` wrote; no model is loaded.
`scena evaluate-dump FILE --help` lists everything that can be set."""

NOTHING = "There are no results: this scenario has no evaluator (evaluator_cls), and losses and metrics need the model: scena lav."


class DumpOptions(ImportOptions):
    """Which code to use, and where the results go."""

    scenario: str | None = param(None, help="the scenario, if its module is not where it was")
    json: Path | None = param(None, help="also write the results to this JSON file (- for the terminal)")


def run(arguments: list[str]) -> int:
    """Evaluates a dump."""
    if not arguments or arguments[0].startswith("-"):
        if any(argument in ("-h", "--help") for argument in arguments):
            print_usage(USAGE)
            return 0
        raise ParamsError("name the dump first: scena evaluate-dump FILE [--flags].")
    path = Path(arguments[0])
    options, rest = parse_options(DumpOptions, arguments[1:])
    import_modules(options.modules)
    scenario_class, params = _stored(path, options.scenario)
    parsed = parse(root_of(evaluator=params.evaluator), rest, prog=f"scena evaluate-dump {path}", options=options)
    check_file("--json", options.json)
    set_up_console()
    params.evaluator = parsed.params.evaluator
    results = evaluate(path, scenario_class(params))
    print_results(results, options.json, NOTHING if results else "There are no samples in this dump.")
    return 0


def evaluate(path: Path, scenario: Any) -> Results:
    """The evaluator's results by model and part of the data."""
    from scena.evaluation.dump import read_dump

    data = scenario.create_data()
    results: Results = {}
    evaluators: dict[str, Any] = {}
    with ExitStack() as stack:
        for model, part, sample in read_dump(path):
            name = " ".join(filter(None, [model, part]))
            if name not in evaluators:
                evaluators[name] = stack.enter_context(scenario.create_evaluator(data))
            evaluators[name].update_state(sample)
        for name, evaluator in evaluators.items():
            results[name] = evaluator.result()
    return results


def _stored(path: Path, explicit: str | None) -> tuple[AnyScenario, Any]:
    from scena.evaluation.dump import read_header
    from scena.scenario.errors import ScenarioError
    from scena.scenario.finding import scenario_of
    from scena.scenario.stored import joined, stored_export

    header = read_header(path)
    if not isinstance(header.get("trainer"), dict):
        raise ScenarioError(f"{path} holds no parameters of a training.")
    header = joined(header, path)
    scenario = scenario_of(header["scenario"], path, explicit)
    return scenario, stored_export(header, scenario, path).scenario
