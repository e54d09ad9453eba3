"""The command line of a params tree: flags, help, completion and errors."""
