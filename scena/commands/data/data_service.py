"""`scena data-service`: a tf.data service, its dispatcher and its workers, with one command."""

import os
import subprocess
import sys
import time

from scena.commands.command import Command
from scena.errors import ParamsError, ScenaError, first_line
from scena.params import Params, param


class DataServiceParams(Params):
    """What runs here."""

    port: int = param(
        5050, ge=1, le=65535, help="port of the dispatcher; its workers on this machine take the next ones"
    )
    host: str = param("localhost", help="the name by which other machines reach this one")
    workers: int = param(2, ge=0, help="workers on this machine")
    worker_addresses: list[str] = param(
        [], help="host:port of each worker on another machine, started there with --worker"
    )
    worker: str | None = param(None, help="run one worker only, at this host:port")
    dispatcher: str | None = param(None, help="with worker: host:port of the dispatcher")
    ends_with_input: bool = param(
        False, help="with worker: end when the standard input does, as a service's own workers do"
    )

    def __post_init__(self) -> None:
        if (self.worker is None) != (self.dispatcher is None):
            raise ParamsError("a single worker needs both: --worker HOST:PORT --dispatcher HOST:PORT")
        if self.worker is None and not self.workers and not self.worker_addresses:
            raise ParamsError("a service needs workers: --workers N on this machine, or --worker_addresses HOST:PORT …")
        for address in [*self.worker_addresses, *(a for a in (self.worker, self.dispatcher) if a is not None)]:
            host, _, port = address.rpartition(":")
            if not host or not port.isdecimal():
                raise ParamsError(f"an address is host:port, for example node7:5051. Received: {address!r}")


class DataServiceError(ScenaError):
    """A part of the service could not start, or ended."""


class DataService(Command):
    """Starts a tf.data service that makes batches for --train.data_service HOST:PORT. Workers read the same paths."""

    name = "data-service"

    def root(self) -> DataServiceParams:
        return DataServiceParams()

    def run(self) -> int:
        return _worker(self.params) if self.params.worker is not None else _service(self.params)


def _service(options: DataServiceParams) -> int:
    import tensorflow as tf

    service = tf.data.experimental.service
    here = [f"{options.host}:{options.port + 1 + number}" for number in range(options.workers)]
    config = service.DispatcherConfig(port=options.port, worker_addresses=[*here, *options.worker_addresses])
    try:
        server = service.DispatchServer(config)  # noqa: F841  (it serves as long as it is referred to)
    except Exception as error:  # TensorFlow raises what gRPC reports
        raise DataServiceError(f"the dispatcher cannot listen on port {options.port}: {first_line(error)}") from None
    dispatcher = f"{options.host}:{options.port}"
    command = [sys.executable, *f"-m scena data-service --dispatcher {dispatcher} --ends_with_input --worker".split()]
    started = {address: subprocess.Popen([*command, address], stdin=subprocess.PIPE) for address in here}
    status = 0
    try:
        print(f"data service at {dispatcher}, {len(here) + len(options.worker_addresses)} workers", flush=True)
        while True:
            time.sleep(0.5)
            for address, process in started.items():
                if process.poll() is not None:
                    raise DataServiceError(
                        f"the worker at {address} has ended with status {process.returncode}. Start the service again, and "
                        "resume the trainings that used it."
                    )
    except DataServiceError as error:
        print(f"scena data-service: {error.label}{error}", file=sys.stderr)
        status = error.exit_status
    except KeyboardInterrupt:
        print("scena data-service: interrupted", file=sys.stderr)
        status = 130
    finally:
        for process in started.values():
            process.kill()
            process.wait()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)  # the dispatcher would wait for trainings that are still connected


def _worker(options: DataServiceParams) -> int:
    import tensorflow as tf

    service = tf.data.experimental.service
    port = int(str(options.worker).rpartition(":")[2])
    config = service.WorkerConfig(dispatcher_address=options.dispatcher, worker_address=options.worker, port=port)
    try:
        server = service.WorkerServer(config)
    except Exception as error:
        raise DataServiceError(f"the worker at {options.worker} cannot start: {first_line(error)}") from None
    if options.ends_with_input:
        sys.stdin.buffer.read()  # a pipe from the service, which closes when that ends
    else:
        server.join()
    return 0
