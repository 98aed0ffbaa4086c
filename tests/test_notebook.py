"""The notebook of `examples/` runs from its first cell to its last."""

from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
NOTEBOOK = Path(__file__).parents[1] / "examples" / "first_hour.ipynb"


def test_the_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = str(Path(__file__).parents[1])
    monkeypatch.setenv("PYTHONPATH", root)
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    ran = [cell for cell in notebook.cells if cell.cell_type == "code"]
    shown = [cell for cell in ran if cell.outputs]
    for cell in ran:
        cell.source = cell.source.replace("sequences=50", "sequences=4").replace("epochs=2", "epochs=1")
    client = nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}})
    client.execute()  # raises CellExecutionError, which names the cell
    assert len(shown) >= 4, "it is stored with what it shows"
    assert all(cell.execution_count for cell in ran)
