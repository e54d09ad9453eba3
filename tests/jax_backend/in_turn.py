"""Runs several `scena` commands in one process, which pays for JAX once: `python -m tests.jax_backend.in_turn '[["lav", …], …]'`.

Prints a JSON list of [exit status, what the command printed].
"""

import contextlib
import io
import json
import sys

from scena.commands.main import main

done = []
for arguments in json.loads(sys.argv[1]):
    text = io.StringIO()
    with contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
        status = main(arguments)
    done.append([status, text.getvalue()])
print(json.dumps(done))
