"""The main function of a worker process: started as a fresh interpreter, it never runs the user's main script.

It imports what its parameters need, and nothing of TensorFlow unless a user's module does.
"""

import os
import signal
import socket
import sys
import threading
from typing import Any


def main(channel_descriptor: int, life_descriptor: int, memory_descriptor: int, parent: int) -> None:
    """Runs until the parent closes the channel, or is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's: it closes the channel
    threading.Thread(target=_end_with_parent, args=(life_descriptor,), daemon=True).start()
    from scena.data.engines.workers.channel import Channel
    from scena.data.engines.workers.messages import Broken, Configuration, Ready

    channel = Channel(socket.socket(fileno=channel_descriptor))
    try:
        config = channel.receive()
    except EOFError:
        return
    assert isinstance(config, Configuration)
    if config.die_with_thread:
        _die_with_parent(parent)
    from scena.data.engines.workers.channel import describe_failure
    from scena.data.engines.workers.config import restored_context
    from scena.data.engines.workers.memory import SharedMemory
    from scena.data.engines.workers.streams import StreamServer
    from scena.data.engines.workers.tasks import TaskServer

    try:
        context = restored_context(config.context)
        memory = SharedMemory(memory_descriptor)
        server: Any
        if config.stage_index is None:
            server = TaskServer(channel, memory, context)
        else:
            server = StreamServer(channel, memory, context, config.stage_index, config.group)
        heavy = [name for name in ("tensorflow", "keras", "torch", "jax") if name in sys.modules]
        channel.send(Ready(heavy))
    except Exception as error:
        channel.send(Broken(describe_failure(error)))
        return
    try:
        server.run()
    except OSError:  # the parent closed its end while we wrote
        return


def _end_with_parent(descriptor: int) -> None:
    """Nothing is ever written to this pipe: reading it ends when the parent does, however it ends."""
    os.read(descriptor, 1)
    os._exit(1)


def _die_with_parent(parent: int) -> None:
    """Lets the kernel kill us with the thread that started us (Linux); only asked for if that is the main thread."""
    import ctypes

    try:
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    except (OSError, AttributeError):
        return
    if os.getppid() != parent:
        os._exit(1)
