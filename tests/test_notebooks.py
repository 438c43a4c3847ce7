"""The notebooks run, show themselves briefly, and are those of their sources."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from headcount.models.finding import is_model, model_dir

nbformat = pytest.importorskip("nbformat")
pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "docs" / "notebooks"
SOURCES = sorted(FOLDER.glob("*.py"))
sys.path.insert(0, str(ROOT / "scripts"))
notebooks = pytest.importorskip("notebooks")


def code(notebook: object) -> list[tuple[str, str]]:
    return [(cell["cell_type"], cell["source"]) for cell in notebook["cells"]]  # type: ignore[index]


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_a_committed_notebook_is_that_of_its_source_and_shows_itself_briefly(source: Path) -> None:
    there = nbformat.read(source.with_suffix(".ipynb"), as_version=4)
    assert code(there) == code(notebooks.built(source)), "run: python scripts/notebooks.py"
    assert list(notebooks.faults(there)) == []
    outputs = [cell for cell in there["cells"] if cell.get("outputs")]
    assert len(outputs) >= 5, "it is committed executed"
    assert "colab.research.google.com" in there["cells"][0]["source"]


@pytest.mark.real
def test_the_notebooks_run(tmp_path: Path) -> None:
    if not is_model(model_dir("minilm")):
        pytest.skip("the model minilm is not there; run `make models`")
    source = str(ROOT / "src")
    program = [sys.executable, str(ROOT / "scripts" / "notebooks.py"), "--check"]
    path = os.pathsep.join([source, os.environ.get("PYTHONPATH", "")])
    env = {**os.environ, "PYTHONPATH": path, "HEADCOUNT_PROGRESS": "off"}
    done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr[-3000:]


def test_what_a_cell_must_not_show_is_seen() -> None:
    def cell(text: str, html: str | None = None) -> object:
        data = {"text/plain": text} | ({"text/html": html} if html else {})
        output = nbformat.v4.new_output("display_data", data=data)
        return nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("", outputs=[output])])

    assert list(notebooks.faults(cell("brief"))) == []
    assert list(notebooks.faults(cell("<Figure size 690x390>"))) == ["cell 0 prints <Figure"]
    assert list(notebooks.faults(cell("<A object at 0x7f>"))) == ["cell 0 prints object at 0x"]
    assert list(notebooks.faults(cell("x" * 2_001))) == ["cell 0 prints 2,001 characters"]
    folded = f"<p>brief</p><details>{'x' * 5_000}</details>"
    assert list(notebooks.faults(cell("brief", folded))) == []
    assert list(notebooks.faults(cell("brief", f"<p>{'x' * 5_000}</p>")))
