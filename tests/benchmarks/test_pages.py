"""The pages of docs/benchmarks hold the tables of docs/results, and say where the code has changed since."""

import json

import pytest

from benchmarks import pages
from pcreg.runtime.errors import InputError
from pcreg.runtime.records import code_fingerprint

ROW = {"pairs": "3", "RR %": "66.7"}
SETTINGS = {"device": "CPU", "versions": "torch 2", "command": "make it", "code": ["pcreg.geometry.se3"]}


def test_every_page_is_of_the_results_and_every_result_is_on_a_page():
    texts = [page.read_text() for page in pages.PAGES.glob("*.md")]
    for text in texts:
        assert pages.filled(text) == text, "run python benchmarks/pages.py"
    named = {found[2] for text in texts for found in pages.BLOCK.finditer(text)}
    assert named == {path.stem for path in pages.RESULTS.glob("*.json")}


def test_a_table_says_where_it_comes_from_and_whether_the_code_has_changed(tmp_path):
    path = tmp_path / "toy.json"
    pages.save(path, [ROW], **SETTINGS)
    text = pages.table(path)
    assert text.startswith("| pairs | RR % |\n| --- | --- |\n| 3 | 66.7 |\n\n*Measured at commit ")
    assert text.endswith("CPU, torch 2, by `make it`.*")
    result = json.loads(path.read_text())
    assert result["measured"]["fingerprint"] == code_fingerprint("geometry")
    result["measured"]["fingerprint"] = "0123456789ab"
    pages.write(path, result)
    assert pages.table(path).endswith("by `make it`. The code has changed since.*")
    result["measured"]["fingerprint"] = None
    pages.write(path, result)
    assert pages.table(path).endswith("by `make it`. Whether the code has changed since is not known.*")


@pytest.mark.parametrize("lost", ["measured", "rows", "fingerprint"])
def test_a_result_that_lacks_a_part_is_refused(tmp_path, lost):
    path = tmp_path / "toy.json"
    pages.save(path, [ROW], **SETTINGS)
    result = json.loads(path.read_text())
    (result["measured"] if lost == "fingerprint" else result).pop(lost)
    path.write_text(json.dumps(result))
    with pytest.raises(InputError, match=lost):
        pages.load(path)
