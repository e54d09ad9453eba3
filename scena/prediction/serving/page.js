const settings = JSON.parse(document.getElementById("settings").textContent);
const [answer, drop, file, shown, several, json] = ["answer", "drop", "file", "shown", "several", "json"].map(id => document.getElementById(id));
const SHOWN = 10; // bars; more are behind a click

async function predict(body, headers) {
  answer.replaceChildren(element("p", "soft", "Predicting…"));
  const reply = await send(settings.path, "POST", body, headers);
  const prediction = reply.json?.predictions?.[0];
  if (!reply.ok || prediction?.error) {
    const message = element("p", "bad", prediction?.error ?? reply.json?.error ?? reply.text);
    message.setAttribute("role", "alert");
    answer.replaceChildren(message);
    return;
  }
  const outputs = prediction !== null && typeof prediction === "object" && !Array.isArray(prediction) ? prediction : {output: prediction};
  const shown = Object.entries(outputs).sort(([, a], [, b]) => rank(a) - rank(b)).flatMap(showOutput);
  answer.replaceChildren(...shown,
    element("p", "small soft", `Answered in ${reply.milliseconds.toFixed(0)} ms`));
}

const isText = value => typeof value === "string";
const isShares = value => Array.isArray(value) && value.length > 1 && value.length <= 1000
  && value.every(x => typeof x === "number" && x >= -1e-6 && x <= 1.000001);
const rank = value => isText(value) ? 0 : isShares(value) ? 1 : 2; // what people look for first

function showOutput([name, value]) {
  const title = element("h3", "", name);
  if (isText(value)) return [title, element("p", "headline", value)];
  if (!isShares(value)) return [title, codeBlock(JSON.stringify(value))];
  const labels = settings.classNames.length === value.length ? settings.classNames : value.map((_, place) => String(place));
  const bars = value.map((share, place) => ({share, label: labels[place]})).sort((a, b) => b.share - a.share).map(({share, label}) => {
    const bar = element("div", "share", element("span", "name", label), element("span", "value", share.toFixed(3)));
    bar.style.setProperty("--share", Math.max(share, 0));
    return bar;
  });
  if (bars.length <= SHOWN) return [title, ...bars];
  const more = element("details", "", element("summary", "", `${bars.length - SHOWN} more`), ...bars.slice(SHOWN));
  return [title, ...bars.slice(0, SHOWN), more];
}

function predictFile(chosen) {
  if (!chosen) return;
  if (shown.src) URL.revokeObjectURL(shown.src);
  shown.src = URL.createObjectURL(chosen); shown.hidden = false;
  shown.onerror = () => { shown.hidden = true; };
  predict(chosen, {"Content-Type": chosen.type.startsWith("image/") ? chosen.type : "application/octet-stream"});
}

json.onsubmit = event => {
  event.preventDefault();
  predict(`{"instances": [${json.elements.instance.value}]}`, {"Content-Type": "application/json"});
};
if (several) several.onsubmit = event => { event.preventDefault(); predict(new FormData(several), {}); };
if (drop) {
  file.onchange = () => predictFile(file.files[0]);
  drop.ondragover = event => { event.preventDefault(); drop.classList.add("over"); };
  drop.ondragleave = () => drop.classList.remove("over");
  drop.ondrop = event => { event.preventDefault(); drop.classList.remove("over"); predictFile(event.dataTransfer.files[0]); };
}
