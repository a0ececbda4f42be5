import json

from tests.processes import CHECKOUT

NOTEBOOK = CHECKOUT / "examples" / "tour.ipynb"


def test_the_cells_of_the_notebook_run_one_after_the_other(tmp_path, monkeypatch):
    cells = [cell for cell in json.loads(NOTEBOOK.read_text())["cells"] if cell["cell_type"] == "code"]
    monkeypatch.chdir(tmp_path)
    names = {}
    for cell in cells:
        assert cell["outputs"] == []  # none are committed
        exec("".join(cell["source"]), names)
    assert names["result"].registered
    assert not names["verdict"].registered
    assert list(names["found"].scans(1)) == [0, 1, 2]
    assert (tmp_path / "demo" / "viewer.html").is_file()
