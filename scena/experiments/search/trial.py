"""The trial's side of a search: reports values and asks whether to continue.

A trial is an ordinary `scena train` or `scena resume` that receives a socket in its environment. Without one, nothing happens.
"""

import json
import logging
import os
import socket
from typing import Any

logger = logging.getLogger(__name__)

SOCKET = "SCENA_TRIAL_SOCKET"
METRIC = "SCENA_TRIAL_METRIC"
VALUES = "SCENA_TRIAL_VALUES"
PATIENCE = 600.0
"""Seconds to wait for the search's answer: its database may be slow, or the scheduler does not read the channel."""


def trial_callbacks() -> list[Any]:
    """The callbacks of a trial; none if the training belongs to no search."""
    address = os.environ.pop(SOCKET, None)  # popped: child processes have nothing to report
    if address is None:
        return []
    from scena.experiments.search.trial_reporter import TrialReporter

    return [TrialReporter(Channel(address), os.environ.get(METRIC), json.loads(os.environ.get(VALUES, "{}")))]


class Channel:
    """The trial's end of the socket: the number of an inherited one, or `HOST:PORT:SECRET` of a search on another machine."""

    def __init__(self, address: str) -> None:
        self._socket: socket.socket | None
        host, _, rest = address.rpartition(":")[0].rpartition(":")
        if host:
            self._socket = socket.create_connection((host, int(rest)), timeout=60)
            self._socket.sendall(address.rpartition(":")[2].encode() + b"\n")
        else:
            os.set_inheritable(int(address), False)
            self._socket = socket.socket(fileno=int(address))
        self._socket.settimeout(PATIENCE)
        self._lines = self._socket.makefile("r", encoding="utf-8")

    def close(self) -> None:
        """Closes it; a report is then lost."""
        self._lines.close()
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def report(self, epoch: int, value: float, key: str) -> bool:
        """Reports a value and its name; True if the trial should end. If the search is gone, the trial continues."""
        if self._socket is None:
            return False
        try:
            self._socket.sendall(json.dumps({"epoch": epoch, "value": value, "key": key}).encode() + b"\n")
            answer = self._lines.readline()
        except OSError:
            answer = ""
        if not answer:
            logger.warning("The search does not answer; the trial continues without it.")
            self._socket = None
            return False
        return bool(json.loads(answer)["stop"])
