"""`python -m scena …`: the same as the `scena` program, for debuggers and for machines without scripts on the path."""

import sys

from scena.commands.main import main

if __name__ == "__main__":
    sys.exit(main())
