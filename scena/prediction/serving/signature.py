"""What a model takes and answers, for clients: schemas of requests and answers, and requests that can be copied.

Everything comes from the specs of the inputs, the outputs of the graph and the names of the classes.
"""

import json
import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from scena.data.spec import ArraySpec
from scena.prediction.class_names import CLASS_OUTPUTS

LENGTH = 3
"""The size of variable axes in examples."""
FEW = 6
"""How many names of classes a short text lists."""
LONGEST = 2000
"""Examples of requests with more characters are read from a file."""
_FILE = {
    "type": "object",
    "description": "a file, base64",
    "properties": {"b64": {"type": "string", "format": "byte"}},
    "required": ["b64"],
    "additionalProperties": False,
}
_ERROR = {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"]}


@dataclass(frozen=True)
class ServedModel:
    """What people call a model, and what they should know about it.

    Args:
        name: its name in addresses.
        class_names: the names of the classes in the order of their numbers, if they are known.
        task: a sentence about what it does.
        facts: names and versions for its page.
    """

    name: str
    class_names: Sequence[str] = ()
    task: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Signature:
    """The inputs and outputs of a served model.

    Args:
        inputs: the specs of the inputs, by name.
        outputs: those of the outputs.
        class_names: the names of the classes, if they are known.
        processed: the scenario has processors that read files.
        one_class: a sample belongs to one class, not to several.
    """

    inputs: Mapping[str, ArraySpec]
    outputs: Mapping[str, ArraySpec]
    class_names: Sequence[str] = ()
    processed: bool = False
    one_class: bool = True

    @property
    def images(self) -> list[str]:
        return [name for name, spec in self.inputs.items() if _is_image(spec)]

    @property
    def takes_one_file(self) -> bool:
        """Whether a file as the body is a sample."""
        return len(self.images) == 1 and (self.processed or len(self.inputs) == 1)

    def example(self) -> dict[str, Any]:
        """Values for each input, of the right shape and type."""
        return {name: _zeros(spec) for name, spec in self.inputs.items()}

    def request_schema(self) -> dict[str, Any]:
        """The JSON of a request."""
        values = {name: {"anyOf": [_array_schema(spec), _FILE]} for name, spec in self.inputs.items()}
        instance = {"type": "object", "properties": values, "required": list(values), "additionalProperties": False}
        kinds = [instance, _FILE, *(next(iter(values.values()))["anyOf"][:1] if len(values) == 1 else [])]
        columns = {name: {"type": "array", "items": value, "minItems": 1} for name, value in values.items()}
        return {
            "oneOf": [
                {
                    "type": "object",
                    "title": "rows",
                    "properties": {"instances": {"type": "array", "items": {"anyOf": kinds}, "minItems": 1}},
                    "required": ["instances"],
                },
                {
                    "type": "object",
                    "title": "columns",
                    "properties": {"inputs": {"type": "object", "properties": columns, "required": list(columns)}},
                    "required": ["inputs"],
                },
            ]
        }

    def form_schema(self) -> dict[str, Any]:
        """A form with a field for each input."""
        text = {"type": "string", "description": "JSON"}
        fields = {name: {"type": "string", "format": "binary"} if name in self.images else text for name in self.inputs}
        return {
            "type": "object",
            "description": "Fields named like the inputs make one sample; in a form with other names each file is a sample.",
            "properties": fields,
        }

    def answer_schema(self) -> dict[str, Any]:
        """The JSON of an answer. Processors of the scenario may add outputs and change them."""
        outputs = {name: self._output_schema(name, spec) for name, spec in self.outputs.items()}
        if self.class_names and self.one_class and not any(name in outputs for name in CLASS_OUTPUTS):
            outputs["class"] = self._class_schema()
        one = {"type": "object", "properties": outputs}
        kinds = [one, *outputs.values()] if len(outputs) == 1 else [one]
        return {
            "type": "object",
            "properties": {
                "predictions": {"type": "array", "items": {"anyOf": [*kinds, _ERROR]}},
                "outputs": {"description": "by columns, if the request came in columns"},
            },
        }

    def operation(self) -> dict[str, Any]:
        """The description of the prediction for OpenAPI."""
        error = {"application/json": {"schema": _ERROR}}
        reasons = {
            "400": "The request or a sample is malformed",
            "408": "The request did not arrive in time",
            "413": "The request is too large",
            "422": "The pipeline refused a sample",
            "429": "Too many samples wait",
            "503": "The service ends",
            "504": "The answer took too long",
        }
        file = {"schema": {"type": "string", "format": "binary"}}
        contents = {
            "application/json": {"schema": self.request_schema(), "example": {"instances": [self.example()]}},
            "multipart/form-data": {"schema": self.form_schema()},
            "application/octet-stream": file,
        }
        if self.images:  # the most natural one first
            first = "application/octet-stream" if self.takes_one_file else "multipart/form-data"
            contents = {first: contents.pop(first), **contents}
        return {
            "summary": "Predict samples",
            "description": "JSON in rows or columns, a form with files, or a file as the body.",
            "operationId": "predict",
            "requestBody": {"required": True, "content": contents},
            "responses": {
                "200": {
                    "description": "The outputs of each sample, or the error in its place",
                    "content": {"application/json": {"schema": self.answer_schema()}},
                },
                **{status: {"description": reason, "content": error} for status, reason in reasons.items()},
            },
        }

    def _output_schema(self, name: str, spec: ArraySpec) -> dict[str, Any]:
        if self.class_names and name in CLASS_OUTPUTS and spec.rank == 0 and spec.dtype.kind in "iu":
            return self._class_schema()
        return _array_schema(spec)

    def _class_schema(self) -> dict[str, Any]:
        return {"type": "string", "enum": list(dict.fromkeys(self.class_names))}


def curl_example(signature: Signature, address: str) -> str:
    """A request for a shell."""
    if signature.takes_one_file:
        return f"curl -H 'Content-Type: image/png' \\\n  --data-binary @image.png \\\n  {shlex.quote(address)}"
    if signature.images:
        fields = (
            f"{name}=@{_file_name(name)}" if name in signature.images else f"{name}={json.dumps(value)}"
            for name, value in signature.example().items()
        )
        return "curl " + " \\\n  ".join([*(f"-F {shlex.quote(field)}" for field in fields), shlex.quote(address)])
    body = json.dumps({"instances": [signature.example()]})
    data = shlex.quote(body) if len(body) <= LONGEST else "@request.json"
    return f"curl -H 'Content-Type: application/json' \\\n  -d {data} \\\n  {shlex.quote(address)}"


def python_example(signature: Signature, address: str) -> str:
    """The same request in Python, with nothing to install."""
    send = (
        "with urllib.request.urlopen(request) as response:\n"
        '    for prediction in json.load(response)["predictions"]:\n        print(prediction)\n'
    )
    if signature.takes_one_file:
        return (
            "import json\nimport urllib.request\n\n"
            'with open("image.png", "rb") as file:\n    content = file.read()\n'
            f'request = urllib.request.Request(\n    {address!r},\n    content,\n    {{"Content-Type": "image/png"}},\n)\n{send}'
        )
    values = ",\n".join(
        f"    {name!r}: "
        + (f"file({_file_name(name)!r})" if name in signature.images else _expression(signature.inputs[name]))
        for name in signature.inputs
    )
    files = (
        'def file(path):\n    with open(path, "rb") as opened:\n'
        '        return {"b64": base64.b64encode(opened.read()).decode()}\n\n\n'
    )
    return (
        ("import base64\n" if signature.images else "")
        + "import json\nimport urllib.request\n\n"
        + ("\n" + files if signature.images else "")
        + f"instance = {{\n{values},\n}}\nrequest = urllib.request.Request(\n    {address!r},\n"
        '    json.dumps({"instances": [instance]}).encode(),\n'
        f'    {{"Content-Type": "application/json"}},\n)\n{send}'
    )


def shape_text(spec: ArraySpec) -> str:
    """`28 × 28 uint8`; variable axes are `?`."""
    sizes = " × ".join("?" if size is None else str(size) for size in spec.shape)
    return f"{sizes} {dtype_name(spec)}".strip()


def dtype_name(spec: ArraySpec) -> str:
    """The type of the values, for people."""
    return "text" if spec.dtype.kind in "USO" else spec.dtype.name


def type_text(schema: Mapping[str, Any], indent: str = "") -> str:
    """A schema of this module in short, for people: `{x: number[8]}`."""
    if kinds := schema.get("anyOf") or schema.get("oneOf"):
        texts = list(dict.fromkeys(type_text(kind, indent) for kind in kinds))
        return f" or\n{indent}".join(texts) if any("\n" in text for text in texts) else " or ".join(texts)
    if "enum" in schema:
        names = [json.dumps(name, ensure_ascii=False) for name in schema["enum"][:FEW]]
        more = len(schema["enum"]) - len(names)
        return " | ".join([*names, f"… ({more} more)"] if more else names)
    kind = schema.get("type")
    if kind == "array":
        sizes, items = "", schema
        while items.get("type") == "array":
            sizes += f"[{items['maxItems']}]" if "maxItems" in items else "[]"
            items = items["items"]
        text = type_text(items, indent)
        return f"({text}){sizes}" if " or " in text or " or\n" in text else f"{text}{sizes}"
    if kind == "object" and schema.get("properties"):
        deeper = indent + "  "
        fields = [f"{name}: {type_text(value, deeper)}" for name, value in schema["properties"].items()]
        short = "{" + ", ".join(fields) + "}"
        if len(short) <= 60 and "\n" not in short:
            return short
        return "{\n" + "".join(f"{deeper}{field},\n" for field in fields) + indent + "}"
    if schema.get("format") == "binary":
        return "file"
    if "minimum" in schema and schema["maximum"] < 2**16:
        return f"{kind} {schema['minimum']}…{schema['maximum']}"
    return str(kind or "any value")


def schema_of(example: Any) -> dict[str, Any]:
    """The schema of JSON values such as this one."""
    if isinstance(example, dict):
        properties = {name: schema_of(value) for name, value in example.items()}
        return {"type": "object", "properties": properties, "required": list(properties)}
    if isinstance(example, list):
        kinds = _kinds(example)
        return {"type": "array", "items": {"anyOf": kinds} if len(kinds) > 1 else kinds[0] if kinds else {}}
    return {"type": {str: "string", bool: "boolean", int: "integer", float: "number"}.get(type(example), "null")}


def _kinds(values: list[Any]) -> list[dict[str, Any]]:
    kinds: list[dict[str, Any]] = []
    for value in values:
        if (kind := schema_of(value)) not in kinds:
            kinds.append(kind)
    return kinds


def _is_image(spec: ArraySpec) -> bool:
    small = any(size is not None and size < 4 for size in spec.shape[:2])
    numbers = spec.dtype.kind in "uf" or spec.dtype.name == "int32"
    return numbers and not small and (spec.rank == 2 or (spec.rank == 3 and spec.shape[-1] in (1, 3, 4)))


def _array_schema(spec: ArraySpec) -> dict[str, Any]:
    schema: dict[str, Any] = {
        "type": {"b": "boolean", "i": "integer", "u": "integer", "f": "number"}.get(spec.dtype.kind, "string")
    }
    if spec.dtype.kind in "iu" and spec.dtype.itemsize < 8:
        limits = np.iinfo(spec.dtype)
        schema |= {"minimum": int(limits.min), "maximum": int(limits.max)}
    for size in reversed(spec.shape):
        fixed = {} if size is None else {"minItems": size, "maxItems": size}
        schema = {"type": "array", "items": schema, **fixed}
    return schema


def _zeros(spec: ArraySpec) -> Any:
    return np.full([LENGTH if size is None else size for size in spec.shape], _zero(spec), object).tolist()


def _zero(spec: ArraySpec) -> Any:
    return {"b": False, "i": 0, "u": 0, "f": 0.0}.get(spec.dtype.kind, "")


def _expression(spec: ArraySpec) -> str:
    """The zeros of an input as Python; short ones in full."""
    sizes = [LENGTH if size is None else size for size in spec.shape]
    if math.prod(sizes) <= 16:
        return repr(_zeros(spec))
    text = repr(_zero(spec))
    for size in reversed(sizes):
        text = f"[{text}] * {size}"
    return text


def _file_name(name: str) -> str:
    return "".join(char if char.isalnum() or char in "-_." else "_" for char in name) + ".png"
