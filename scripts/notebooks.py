"""Build the notebooks of docs/notebooks from their sources, run them, and look at what they print.

``python scripts/notebooks.py`` writes the notebooks with their outputs; ``--check`` runs them and
writes nothing. One kernel runs them all, so that its libraries are loaded once.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parent.parent / "docs" / "notebooks"
#: Where the project lies on GitHub, for the badges: OWNER/NAME.
REPOSITORY = os.environ.get("HEADCOUNT_REPOSITORY", "OWNER/headcount")
#: The most characters that a cell shows before "more" is opened.
MOST = 2_000
REFUSED = ("<Figure", "object at 0x", "<AxesSubplot")

BADGE = (
    "[![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)]"
    "(https://colab.research.google.com/github/{repository}/blob/main/docs/notebooks/{name}.ipynb)"
)
INSTALL = """# In Colab: a clone, installed. Elsewhere nothing happens.
import importlib.util

if importlib.util.find_spec("headcount") is None:
    get_ipython().system("git clone --depth 1 https://github.com/{repository} headcount")
    get_ipython().system("pip install --quiet './headcount[plot]'")"""


def built(source: Path) -> nbformat.NotebookNode:
    """A notebook from a source in the percent format, with a badge and a cell that installs."""
    cells = []
    for number, block in enumerate(re.split(r"^# %%", source.read_text("utf8"), flags=re.M)[1:]):
        kind, _, text = block.partition("\n")
        if "[markdown]" in kind:
            text = "\n".join(line.removeprefix("#").removeprefix(" ") for line in text.splitlines())
            cells.append(nbformat.v4.new_markdown_cell(text.strip()))
        else:
            cells.append(nbformat.v4.new_code_cell(text.strip()))
        if number == 0:
            about = {"repository": REPOSITORY, "name": source.stem}
            cells[0]["source"] += "\n\n" + BADGE.format(**about)
            cells.append(nbformat.v4.new_code_cell(INSTALL.format(**about)))
    for number, cell in enumerate(cells):
        cell["id"] = f"{source.stem}-{number}"  # the same each time
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})


def run(notebooks: list[nbformat.NotebookNode], folder: Path) -> None:
    """Run them one after another in one kernel, each with empty names."""
    os.environ["PYTHONWARNINGS"] = "ignore"  # of tqdm, which misses its widgets
    client = NotebookClient(nbformat.v4.new_notebook(), timeout=300, record_timing=False)
    client.create_kernel_manager()
    with client.setup_kernel(cwd=str(folder)):
        for notebook in notebooks:
            client.nb = notebook
            client.reset_execution_trackers()
            for number, cell in enumerate(notebook.cells):
                client.execute_cell(cell, number, execution_count=client.code_cells_executed + 1)
            client.nb = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("%reset -f")])
            client.execute_cell(client.nb.cells[0], 0)


def seen(html: str) -> str:
    """The text of HTML without what is folded away, styles and tags."""
    for part in ("details", "style", "svg"):
        html = re.sub(rf"<{part}\b.*?</{part}>", "", html, flags=re.DOTALL)
    return re.sub(r"<[^>]+>", "", html)


def faults(notebook: nbformat.NotebookNode) -> Iterator[str]:
    """What a cell shows and must not: bare objects, errors, long texts."""
    for number, cell in enumerate(notebook.cells):
        for output in cell.get("outputs", ()):
            data: dict[str, Any] = output.get("data", {})
            text = data.get("text/plain", output.get("text", ""))
            shown = seen(data["text/html"]) if "text/html" in data else text
            for bad in REFUSED:
                if bad in text or bad in shown:
                    yield f"cell {number} prints {bad}"
            if max(len(text), len(shown)) > MOST:
                yield f"cell {number} prints {max(len(text), len(shown)):,} characters"
            if output["output_type"] == "error" or output.get("name") == "stderr":
                yield f"cell {number} complains: {output.get('text') or output.get('evalue')}"


def main() -> int:
    """Build, run, look; write unless only to check."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="Some of them: heads, ship, clark.")
    parser.add_argument("--check", action="store_true", help="Run them and write nothing.")
    asked = parser.parse_args()
    sources = [
        one for one in sorted(FOLDER.glob("*.py")) if one.stem in (asked.names or [one.stem])
    ]
    notebooks = [built(source) for source in sources]
    with tempfile.TemporaryDirectory() as folder:
        run(notebooks, Path(folder))
    bad = 0
    for source, notebook in zip(sources, notebooks, strict=True):
        for fault in faults(notebook):
            bad += 1
            print(f"{source.stem}.ipynb: {fault}", file=sys.stderr)
        if not asked.check:
            nbformat.write(notebook, source.with_suffix(".ipynb"))
    return min(bad, 1)


if __name__ == "__main__":
    sys.exit(main())
