"""The routes of a service for OpenAPI; the page `/docs` shows this description."""

from collections.abc import Mapping
from typing import Any

from scena import __version__
from scena.prediction.serving.signature import schema_of


def describe_service(name: str, operations: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The whole document.

    Args:
        name: that of the model.
        operations: path -> method -> what it does.
    """
    return {
        "openapi": "3.1.0",
        "info": {"title": f"Scena: {name}", "version": __version__},
        "paths": {path: dict(methods) for path, methods in operations.items()},
    }


def describe_json(summary: str, example: Any) -> dict[str, Any]:
    """A GET that always answers JSON like this."""
    return _get(summary, {"application/json": {"schema": schema_of(example), "example": example}})


def describe_text(summary: str) -> dict[str, Any]:
    """A GET that answers text."""
    return _get(summary, {"text/plain": {"schema": {"type": "string"}}})


def _get(summary: str, content: dict[str, Any]) -> dict[str, Any]:
    name = "".join(char if char.isalnum() else "_" for char in summary.lower())
    return {
        "get": {
            "summary": summary,
            "operationId": name,
            "responses": {"200": {"description": "The answer", "content": content}},
        }
    }
