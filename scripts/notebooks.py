"""Executes the notebooks of docs/notebooks and writes each as a Markdown page beside it: `python scripts/notebooks.py`.

The pages of the documentation are made from the stored outputs, so the site needs no kernel. A test executes the notebooks and
compares the pages.
"""

import base64
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "notebooks"
TERMINAL = re.compile(r"\x1b\[[0-9;]*m|\r")
NOTE = "<!-- Made from {name} by scripts/notebooks.py: edit the notebook, not this page. -->"


def page(notebook: Any, name: str) -> tuple[str, dict[str, bytes]]:
    """A notebook as Markdown, and the images that it shows by file name."""
    parts, images = [NOTE.format(name=name)], {}
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
            continue
        shell = cell.source.startswith("!")
        parts.append(f"```console\n$ {cell.source[1:]}\n```" if shell else f"```python\n{cell.source}\n```")
        for output in cell.outputs:
            data = output.get("data", {})
            if "image/png" in data:
                file = f"{Path(name).stem}-{len(images) + 1}.png"
                images[file] = base64.b64decode(data["image/png"])
                parts.append(f"![Output of the cell above]({file})")
            elif "text/html" in data:
                parts.append(re.sub(r"\n\s*", "", re.sub(r"<style.*?</style>", "", data["text/html"], flags=re.DOTALL)))
            elif text := output.get("text") or data.get("text/plain"):
                parts.append(f"```text\n{TERMINAL.sub('', text).rstrip()}\n```")
    return "\n\n".join(parts) + "\n", images


def main() -> None:
    import nbformat
    from nbclient import NotebookClient

    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for path in sorted(FOLDER.glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        with tempfile.TemporaryDirectory() as folder:
            NotebookClient(
                notebook, timeout=600, coalesce_streams=True, resources={"metadata": {"path": folder}}
            ).execute()
        for cell in notebook.cells:
            cell.metadata.pop("execution", None)  # times, which differ each time
        notebook.metadata["language_info"] = {"name": "python"}
        nbformat.write(notebook, path)
        text, images = page(notebook, path.name)
        path.with_suffix(".md").write_text(text, encoding="utf-8")
        for name, image in images.items():
            (FOLDER / name).write_bytes(image)
        print(path.name)


if __name__ == "__main__":
    main()
