"""The subcommands of the `scena` program, one small file each."""
