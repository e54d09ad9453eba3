function element(name, className, ...content) {
  const made = document.createElement(name);
  made.className = className;
  made.append(...content);
  return made;
}

// Sends a request and hands over the answer as text, with JSON where it is JSON.
async function send(path, method, body, headers) {
  const begun = performance.now();
  try {
    const reply = await fetch(path, {method, body, headers});
    const text = await reply.text();
    let json;
    try { json = JSON.parse(text); } catch {}
    return {status: reply.status, ok: reply.ok, text, json, milliseconds: performance.now() - begun};
  } catch (error) {
    return {status: 0, ok: false, text: "", json: {error: `The service did not answer: ${error.message}`}, milliseconds: 0};
  }
}

function codeBlock(text) {
  const copy = element("button", "copy", "Copy");
  copy.type = "button"; copy.dataset.copy = "";
  return element("div", "code", copy, element("pre", "", element("code", "", text)));
}
