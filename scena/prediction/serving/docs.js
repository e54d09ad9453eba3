function bodyOf(form) {
  const kind = form.dataset.kind;
  if (kind === undefined) return [undefined, {}];
  if (kind === "multipart/form-data") return [new FormData(form), {}]; // the browser adds the boundary
  return [form.elements.file?.files[0] ?? form.elements.body.value, {"Content-Type": kind}];
}

for (const form of document.querySelectorAll("form.try")) form.onsubmit = async event => {
  event.preventDefault();
  const shown = form.closest(".card").querySelector(".reply");
  shown.replaceChildren(element("p", "soft", "Waiting…"));
  const reply = await send(form.dataset.path, form.dataset.method, ...bodyOf(form));
  const text = reply.json === undefined ? reply.text : JSON.stringify(reply.json, null, 1);
  shown.replaceChildren(
    element("p", reply.ok ? "good" : "bad", `${reply.status || "No answer"} after ${reply.milliseconds.toFixed(0)} ms`), codeBlock(text));
};
