"""The pages of the service, each in one piece: nothing is fetched from elsewhere."""

import html
from typing import Any

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>MODEL_NAME</title><meta name="viewport" content="width=device-width">
<style>
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 42rem; margin: 2rem auto; padding: 0 1rem; }
label { display: block; border: 2px dashed #8888; border-radius: .6rem; padding: 2.5rem 1rem; text-align: center; cursor: pointer; }
label.over { background: #48f2; } label input, [hidden] { display: none !important; }
img { max-width: 14rem; max-height: 14rem; margin-top: 1rem; image-rendering: pixelated; min-width: 84px; }
.bar { display: flex; gap: .5rem; align-items: center; } .bar i { background: #48f; height: .8rem; display: block; }
.bar span { min-width: 3rem; text-align: right; } pre { overflow: auto; background: #8881; padding: .7rem; }
</style></head>
<body><h1>MODEL_NAME</h1>
<label id="drop">Drop a picture here, or click to choose one<input id="file" type="file"></label>
<form id="several" hidden></form>
<img id="shown" alt="" hidden><div id="answer" aria-live="polite"></div>
<p><a href="/docs">Interface</a> · <a href="/metrics">Metrics</a></p>
<script>
const [drop, several, answer, shown] = ["drop", "several", "answer", "shown"].map(id => document.getElementById(id));
const address = "/v1/models/MODEL_NAME";
let names = [];
async function about() {
  const signature = (await (await fetch(`${address}/metadata`)).json()).metadata.signature_def.serving_default;
  names = signature.class_names ?? [];
  const inputs = Object.keys(signature.inputs);
  if (inputs.length < 2) return;
  drop.hidden = true; several.hidden = false;
  for (const name of inputs) {
    const row = document.createElement("p"), title = document.createElement("b"), file = document.createElement("input");
    title.textContent = `${name} `; file.type = "file"; file.name = name; file.required = true;
    row.append(title, file); several.append(row);
  }
  const button = document.createElement("button"); button.textContent = "Predict"; several.append(button);
}
const ready = about().catch(() => {});  // without it, numbers stand for classes
several.onsubmit = event => { event.preventDefault(); send(new FormData(several), {}); };
function ask(file) {
  shown.src = URL.createObjectURL(file); shown.hidden = false;
  return send(file, {"Content-Type": file.type.startsWith("image/") ? file.type : "application/octet-stream"});
}
async function send(body, headers) {
  answer.textContent = "…";
  await ready;
  const reply = await fetch(`${address}:predict`, {method: "POST", body, headers});
  const result = await reply.json();
  answer.replaceChildren();
  if (!reply.ok) { answer.textContent = result.error; return; }
  show(result.predictions[0]);
}
function show(outputs) {
  if (typeof outputs !== "object" || Array.isArray(outputs)) outputs = {output: outputs};
  for (const [name, value] of Object.entries(outputs)) {
    const title = document.createElement("h3"); title.textContent = name; answer.append(title);
    const vector = Array.isArray(value) && value.length <= 100 && value.every(x => typeof x === "number" && x >= -1e-6 && x <= 1.000001);
    if (!vector) {
      const text = document.createElement("pre"); text.textContent = JSON.stringify(value); answer.append(text); continue;
    }
    const labels = names.length === value.length ? names : value.map((_, place) => place);
    value.forEach((share, place) => {
      const row = document.createElement("div"), bar = document.createElement("i"), label = document.createElement("span");
      row.className = "bar"; label.textContent = labels[place]; bar.style.width = `${Math.round(share * 300)}px`;
      row.append(label, bar, share.toFixed(3)); answer.append(row);
    });
  }
}
document.getElementById("file").onchange = event => ask(event.target.files[0]);
drop.ondragover = event => { event.preventDefault(); drop.classList.add("over"); };
drop.ondragleave = () => drop.classList.remove("over");
drop.ondrop = event => { event.preventDefault(); drop.classList.remove("over"); ask(event.dataTransfer.files[0]); };
</script></body></html>
"""


def docs_page(description: dict[str, Any]) -> str:
    """The routes of an OpenAPI description, for a person to read."""
    cells = [
        (f"<code>{method.upper()}</code>", f"<code>{html.escape(path)}</code>", html.escape(route.get("summary", "")))
        for path, methods in description["paths"].items()
        for method, route in methods.items()
    ]
    rows = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in cells)
    title = html.escape(description["info"]["title"])
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>:root {{ color-scheme: light dark; }} '
        "body { font: 16px/1.5 system-ui, sans-serif; max-width: 55rem; margin: 2rem auto; padding: 0 1rem; } td { padding-right: 1.5rem; }"
        f'</style></head><body><h1>{title}</h1><table>{rows}</table><p>Machine-readable: <a href="/openapi.json">openapi.json</a></p>'
        "</body></html>\n"
    )
