"""The version of the rules by which samples are chosen, and what is said of a run that was made under older ones. No numpy."""

import logging
from typing import Any

logger = logging.getLogger("scena.data")

RULES = 1
"""Stored with a run. 1: a limit draws from the whole source, and automatic splits hold each class's share."""


def tell_of_rules(stored: Any, what: str) -> None:
    """Logs one line if a run was made when limits and automatic splits chose other samples."""
    if not isinstance(stored, int) or stored < RULES:
        logger.warning(
            "%s was made by an earlier Scena: a limit took the first samples then, and the automatic validation split was "
            "another one. If the run has either, it now sees other samples.",
            what,
        )
