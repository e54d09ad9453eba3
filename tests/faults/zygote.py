"""Runs `scena` in processes that start in a fraction of a second: each is forked from one that has imported TensorFlow.

They are processes of their own, with the whole program in them, and can be killed like any other. Requests and answers are
lines of JSON on standard input and output.
"""

import json
import os
import signal
import sys


def serve() -> None:
    """Starts a process for each request, and says how it ended."""
    from scena.devices.quiet import load_tensorflow

    load_tensorflow()
    import keras  # noqa: F401

    import scena.commands.resume
    import scena.commands.train
    import scena.scenario.exporting
    import scena.training.trainer  # noqa: F401
    import tests.faults.survivor.model
    import tests.faults.survivor.scenario  # noqa: F401

    _answer({"ready": True})
    for line in sys.stdin:
        request = json.loads(line)
        if "wait" in request:
            _, status = os.waitpid(request["wait"], 0)
            _answer({"status": os.waitstatus_to_exitcode(status)})
            continue
        pid = os.fork()
        if pid == 0:
            _become(request)
        _answer({"pid": pid})


def _become(request: dict[str, object]) -> None:
    status = 1
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        log = os.open(str(request["log"]), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        from scena.commands.main import main

        status = main([str(word) for word in request["arguments"]])  # type: ignore[attr-defined]
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else 1
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _answer(value: dict[str, object]) -> None:
    print(json.dumps(value), flush=True)


if __name__ == "__main__":
    serve()
    os._exit(0)  # nothing is left to clear away, and TensorFlow takes its time
