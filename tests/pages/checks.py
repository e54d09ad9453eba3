"""What holds for every page of Scena, at every width and in both themes, checked in a real browser."""

from tests.pages.browser import Browser

WIDTHS = (400, 1280, 1920)

_SCROLLS = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"

# Boxes, headings and buttons: as much of them as is visible, where neither holds the other.
_OVERLAPS = """
const kinds = "h1, h2, h3, .card, .kind, .facts > div, .contents a, .top nav a, button, figcaption, .gallery figure";
const visible = item => { let {left, top, right, bottom} = item.getBoundingClientRect();
  for (let outer = item.parentElement; outer; outer = outer.parentElement) {
    if (getComputedStyle(outer).overflow === "visible") continue;
    const box = outer.getBoundingClientRect();
    [left, top] = [Math.max(left, box.left), Math.max(top, box.top)];
    [right, bottom] = [Math.min(right, box.right), Math.min(bottom, box.bottom)];
  }
  return {left, top, right, bottom}; };
const all = [...document.querySelectorAll(kinds)].map(item => ({item, box: visible(item)}))
  .filter(({box}) => box.right > box.left && box.bottom > box.top);
const found = [];
all.forEach((a, place) => all.slice(place + 1).forEach(b => {
  if (a.item.contains(b.item) || b.item.contains(a.item)) return;
  const wide = Math.min(a.box.right, b.box.right) - Math.max(a.box.left, b.box.left);
  const high = Math.min(a.box.bottom, b.box.bottom) - Math.max(a.box.top, b.box.top);
  if (wide > 1 && high > 1) found.push(`${a.item.outerHTML.slice(0, 80)} overlaps ${b.item.outerHTML.slice(0, 80)}`);
}));
return found"""

# WCAG AA: 4.5 to 1 between text and what is behind it.
_FAINT = """
const parts = color => (color.match(/[\\d.]+/g) ?? []).map(Number);
const light = color => { const [r, g, b] = parts(color).map(x => x / 255).map(x => x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
const behind = item => { for (; item; item = item.parentElement) { const color = getComputedStyle(item).backgroundColor;
  if (parts(color)[3] !== 0) return color; } return "rgb(255, 255, 255)"; };
const found = new Set();
for (const item of document.body.querySelectorAll("*")) {
  if (!item.checkVisibility() || ![...item.childNodes].some(node => node.nodeType === 3 && node.data.trim())) continue;
  if (item.matches("script, style, :disabled")) continue;
  const style = getComputedStyle(item);
  const [a, b] = [light(item.namespaceURI.endsWith("svg") ? style.fill : style.color), light(behind(item))];
  const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  if (ratio < 4.5) found.add(`${ratio.toFixed(2)}: ${item.tagName}.${item.className} ${item.textContent.slice(0, 30)}`);
}
return [...found]"""


def check_layout(page: Browser) -> None:
    """The open page never scrolls sideways, nothing overlaps, and all text is readable in both themes."""
    for width in WIDTHS:
        page.resize(width)
        assert page.run(_SCROLLS) == 0, f"scrolls sideways at {width} pixels"
        assert page.run(_OVERLAPS) == [], f"at {width} pixels"
    for theme in ("light", "dark"):
        page.prefer(theme)
        faint = page.run(_FAINT)
        assert faint == [], f"{theme}: {faint}"


def check_theme_switch(page: Browser) -> None:
    """The page follows the system, the button changes it, and the choice stays."""
    background = "return getComputedStyle(document.body).backgroundColor"
    page.run("localStorage.clear(); delete document.documentElement.dataset.theme")
    page.prefer("light")
    light = page.run(background)
    page.prefer("dark")
    dark = page.run(background)
    assert light != dark
    page.click("[data-theme-switch]")
    assert page.run(background) == light
    page.call("POST", "/refresh")
    assert page.run(background) == light
    page.click("[data-theme-switch]")
    assert page.run(background) == dark
    page.run("localStorage.clear()")
