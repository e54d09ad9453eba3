"use strict";
const isDark = () => (document.documentElement.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";

function switchTheme() {
  const theme = isDark() ? "light" : "dark";
  document.documentElement.dataset.theme = theme;
  try { localStorage.setItem("scena-theme", theme); } catch {}
}

// Numbers by size, texts as people sort them; what has no value stays last in both directions.
function sortItems(items, valueOf, descending) {
  const parent = items[0]?.parentNode;
  const keyed = items.map(item => {
    const text = valueOf(item), number = Number(text);
    return {item, text, number: text === "" || Number.isNaN(number) ? null : number, none: text === "" || text === "–"};
  });
  const order = descending ? -1 : 1;
  keyed.sort((a, b) => a.none - b.none || order * (a.number !== null && b.number !== null
    ? a.number - b.number : a.text.localeCompare(b.text, undefined, {numeric: true})));
  parent?.append(...keyed.map(({item}) => item));
}

function sortTable(button) {
  const head = button.closest("th"), rows = [...button.closest("table").tBodies[0].rows], column = head.cellIndex;
  const isNumber = rows.some(row => row.cells[column].dataset.value !== undefined);
  const descending = head.ariaSort ? head.ariaSort === "ascending" : isNumber;
  for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
  head.ariaSort = descending ? "descending" : "ascending";
  sortItems(rows, row => row.cells[column].dataset.value ?? row.cells[column].textContent, descending);
}

function sortGallery(button) {
  const gallery = document.getElementById(button.closest("[data-sorts]").dataset.sorts);
  for (const other of button.parentNode.children) other.ariaPressed = String(other === button);
  sortItems([...gallery.children], item => item.dataset[button.dataset.key] ?? "", button.dataset.order === "descending");
}

async function copyCode(button) {
  const text = button.parentNode.querySelector("code").textContent;
  try {
    await navigator.clipboard.writeText(text);
  } catch { // a page that came over plain HTTP has no clipboard of its own
    const field = document.createElement("textarea");
    field.value = text; document.body.append(field); field.select();
    document.execCommand("copy"); field.remove();
  }
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = "Copy"; }, 1500);
}

function showTab(tab) {
  for (const other of tab.parentNode.children) {
    other.ariaSelected = String(other === tab); other.tabIndex = other === tab ? 0 : -1;
    document.getElementById(other.getAttribute("aria-controls")).hidden = other !== tab;
  }
}

document.addEventListener("click", event => {
  const button = event.target.closest("button");
  if (!button) return;
  if (button.matches("[data-theme-switch]")) switchTheme();
  else if (button.matches("th .sort")) sortTable(button);
  else if (button.matches("[data-sorts] button")) sortGallery(button);
  else if (button.matches("[data-copy]")) copyCode(button);
  else if (button.matches("[role=tab]")) showTab(button);
});
document.addEventListener("keydown", event => {
  const step = {ArrowRight: 1, ArrowLeft: -1}[event.key], tab = event.target.closest?.("[role=tab]");
  if (!step || !tab) return;
  const all = [...tab.parentNode.children], next = all[(all.indexOf(tab) + step + all.length) % all.length];
  showTab(next); next.focus();
});
