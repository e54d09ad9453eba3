"""The pages of the service, each self-contained: nothing is fetched from elsewhere."""

import json
from functools import cache
from pathlib import Path
from typing import Any

from scena.data.spec import ArraySpec
from scena.pages.layout import card, code, details, escaped, grid, render_page, section, table, tabs
from scena.prediction.serving.signature import (
    ServedModel,
    Signature,
    curl_example,
    dtype_name,
    python_example,
    shape_text,
    type_text,
)

LINKS = {"/": "Try it", "/docs": "API", "/openapi.json": "OpenAPI", "/metrics": "Metrics"}


def model_page(model: ServedModel, signature: Signature, origin: str, path: str) -> str:
    """The page to try a model, which answers at `path` of the service's `origin` (scheme, host and port)."""
    address = origin + path
    settings = {"path": path, "classNames": list(signature.class_names)}
    examples = {"curl": code(curl_example(signature, address)), "Python": code(python_example(signature, address))}
    about = card("Ask from a program", tabs("example", examples)) + card(
        "Inputs and outputs", _signature_table(signature)
    )
    if signature.class_names:
        about += _class_list(signature)
    answer = (
        '<div id="answer" class="answer" aria-live="polite"><p class="soft small">The answer appears here.</p></div>'
    )
    body = (
        f'<div class="grid">{card("Try it", _try_forms(signature) + answer)}<div class="stack">{about}</div></div>'
        f'<script type="application/json" id="settings">{_json(settings)}</script>'
    )
    return render_page(
        model.name,
        body,
        kind="Scena serve",
        lead=model.task,
        facts=model.facts,
        links=LINKS,
        script=_asset("show.js") + _asset("page.js"),
    )


def docs_page(description: dict[str, Any], name: str) -> str:
    """The routes of an OpenAPI description (the content of `/openapi.json`), with their schemas, each to be tried."""
    parts, contents = [], {}
    operations = [
        (path, method, route) for path, methods in description["paths"].items() for method, route in methods.items()
    ]
    for number, (path, method, route) in enumerate(sorted(operations, key=lambda one: one[1] != "post")):
        key = f"operation-{number}"
        contents[key] = route.get("summary", path)
        heading = f'<p class="route"><b class="method {escaped(method)}">{escaped(method.upper())}</b> <code>{escaped(path)}</code></p>'
        text = f'<p class="soft">{escaped(route["description"])}</p>' if route.get("description") else ""
        request = card("Request", _try_operation(key, method, path, route))
        answers = card("Answers", _answers(route))
        parts.append(section(key, contents[key], f'<div class="stack">{heading}{text}{grid([request, answers])}</div>'))
    return render_page(
        f"{name}: API",
        "\n".join(parts),
        kind="Scena serve",
        lead="Every route of this service, with the schemas of its requests and answers. Send a request from here to see what comes back.",
        links=LINKS,
        contents=contents,
        script=_asset("show.js") + _asset("docs.js"),
    )


def _try_forms(signature: Signature) -> str:
    """A drop area for a file, a form with a field for each input, or JSON: what the model takes, the most natural first."""
    send = '<p><button class="main">Predict</button></p>'
    text = json.dumps(signature.example(), ensure_ascii=False)
    instance = (
        '<form id="json"><label for="instance" class="small soft">One sample as JSON</label>'
        f'<textarea id="instance" name="instance" spellcheck="false" rows="8">{escaped(text)}</textarea>{send}</form>'
    )
    if signature.takes_one_file:
        drop = (
            '<label id="drop" class="drop"><input id="file" type="file"><span>Drop an image here, or click to choose one</span>'
            '<img id="shown" alt="The chosen image" hidden></label>'
        )
        return tabs("try", {"Image": drop, "JSON": instance})
    if not signature.images:
        return instance
    fields = "".join(_field(name, spec, name in signature.images) for name, spec in signature.inputs.items())
    return tabs("try", {"Files": f'<form id="several">{fields}{send}</form>', "JSON": instance})


def _field(name: str, spec: ArraySpec, is_file: bool) -> str:
    label = f'<b>{escaped(name)}</b> <span class="soft small">{escaped(shape_text(spec))}</span>'
    if is_file:
        return f'<label class="field">{label}<input type="file" name="{escaped(name)}" required></label>'
    zeros = escaped(json.dumps(Signature({name: spec}, {}).example()[name]))
    return f'<label class="field">{label}<input name="{escaped(name)}" value="{zeros}" required></label>'


def _signature_table(signature: Signature) -> str:
    rows = [
        [
            name,
            kind,
            " × ".join("?" if size is None else str(size) for size in spec.shape) or "one value",
            dtype_name(spec),
        ]
        for kind, specs in (("input", signature.inputs), ("output", signature.outputs))
        for name, spec in specs.items()
    ]
    return table(["Name", "Kind", "Shape", "Type"], rows, label="Inputs and outputs")


def _class_list(signature: Signature) -> str:
    names = "".join(f"<li>{escaped(name)}</li>" for name in signature.class_names)
    count = len(signature.class_names)
    return details(f"{count} classes" if count > 1 else "1 class", f'<ol start="0" class="names">{names}</ol>')


_KINDS = {"application/json": "JSON", "multipart/form-data": "Form", "application/octet-stream": "File"}


def _try_operation(key: str, method: str, path: str, route: dict[str, Any]) -> str:
    contents = route.get("requestBody", {}).get("content", {})
    attributes = f'class="try" data-method="{escaped(method.upper())}" data-path="{escaped(path)}"'
    send = '<p><button class="main">Send</button></p>'
    reply = '<div class="reply" aria-live="polite"></div>'
    if not contents:
        return f'<form {attributes}><p class="soft">No parameters.</p>{send}</form>{reply}'
    panels = {
        _KINDS[kind]: f'<p class="small soft">Content-Type: {escaped(kind)}</p>{_type_code(content["schema"])}'
        f'<form {attributes} data-kind="{escaped(kind)}">{_body_fields(content)}{send}</form>'
        for kind, content in contents.items()
    }
    return tabs(key + "-body", panels) + reply


def _body_fields(content: dict[str, Any]) -> str:
    schema = content["schema"]
    if schema.get("format") == "binary":
        return '<label class="field"><b>File</b><input type="file" name="file" required></label>'
    if "example" in content:
        text = json.dumps(content["example"], ensure_ascii=False)
        return f'<textarea name="body" rows="6" spellcheck="false" aria-label="Body of the request">{escaped(text)}</textarea>'
    kinds = {name: "file" if one.get("format") == "binary" else "text" for name, one in schema["properties"].items()}
    fields = (
        f'<label class="field"><b>{escaped(name)}</b><input type="{kind}" name="{escaped(name)}" required></label>'
        for name, kind in kinds.items()
    )
    return "".join(fields)


def _answers(route: dict[str, Any]) -> str:
    responses = route["responses"]
    shown = "".join(
        f'<p class="small soft">Status 200, {escaped(kind)}</p>{_type_code(content["schema"])}'
        for kind, content in responses["200"].get("content", {}).items()
    )
    others = [[status, response["description"]] for status, response in responses.items() if status != "200"]
    errors = f'<p class="small soft">Other statuses, with {{error: string}}</p>{table(["Status", "Meaning"], others)}'
    return shown + (errors if others else "")


def _type_code(schema: dict[str, Any]) -> str:
    return code(type_text(schema)) if "properties" in schema or "oneOf" in schema else ""


def _json(value: Any) -> str:
    """JSON inside a page: nothing in it ends its element."""
    return json.dumps(value).replace("<", "\\u003c")


@cache
def _asset(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")
