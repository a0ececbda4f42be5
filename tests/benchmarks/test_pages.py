"""The pages of docs/benchmarks hold the tables of docs/results, with their origin."""

import re

from benchmarks import pages

MEASURED = {"commit": "abc", "date": "2026-11-25", "device": "CPU", "versions": "torch 2", "command": "make"}


def test_every_page_is_of_the_results_and_every_result_is_on_a_page():
    texts = [page.read_text() for page in pages.PAGES.glob("*.md")]
    for text in texts:
        assert pages.filled(text) == text, "run python benchmarks/pages.py"
    named = {found[2] for text in texts for found in pages.BLOCK.finditer(text)}
    assert named == {path.stem for path in pages.RESULTS.glob("*.json")}


def test_every_table_can_be_measured_again():
    script = (pages.ROOT / "benchmarks/tables.sh").read_text()
    (listed,) = re.findall('CPU="(.*?)"\nGPU="(.*?)"', script, re.DOTALL)
    names = " ".join(listed).split()
    kept = {path.stem for path in pages.RESULTS.glob("*.json")}
    assert sorted(names) == sorted(kept - {"all-eight-register", "all-eight-5000"})
    assert all(re.search(rf"^    {name}\)", script, re.MULTILINE) for name in names)


def test_origin_of_a_table():
    assert pages.origin(MEASURED) == "*Measured at commit abc, 2026-11-25, CPU, torch 2, with `make`.*"
    unstated = pages.origin(MEASURED | {"commit": None, "versions": ""})
    assert unstated == "*Measured at a commit that was not recorded, 2026-11-25, CPU, with `make`.*"
