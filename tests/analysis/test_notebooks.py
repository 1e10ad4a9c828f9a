"""The notebooks run from the first cell to the last, and are kept with small outputs."""

import json
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))


def executed(path, folder, changes):
    """Cells of code after their execution in a folder; changes: text -> text, each found."""
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    text = path.read_text()
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    notebook = nbformat.reads(text, as_version=4)
    where = {"metadata": {"path": str(folder)}}
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3", resources=where).execute()
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def pictures(cells):
    return sum("image/png" in o.get("data", {}) for cell in cells for o in cell.outputs)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_first_search_goes_from_arrays_to_a_limit(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(EXAMPLES.parent))
    changes = {"600_000": "200_000", "N_SIGNAL = 4000": "N_SIGNAL = 2500"}
    cells = executed(EXAMPLES / "first_search.ipynb", tmp_path, changes)
    assert pictures(cells) == 2
    assert "median expected limit" in cells[-2].outputs[-1]["text"]


@pytest.mark.timeout(300)
def test_a_finished_run_is_drawn_in_another_style(evaluated, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(EXAMPLES.parent))
    cells = executed(EXAMPLES / "redraw.ipynb", tmp_path, {"runs/demo": str(evaluated[0].path)})
    assert pictures(cells) == 2


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.name)
def test_a_notebook_is_kept_with_its_outputs_small_and_without_the_place_it_was_run_in(path):
    content = json.loads(path.read_text())
    cells = [cell for cell in content["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] or "import" in "".join(cell["source"]) for cell in cells)
    assert path.stat().st_size < 200_000
    assert str(Path.home()) not in path.read_text()
