"""--quiet, --verbose and --json: what goes to stdout, what to stderr."""

import json

import pytest

from pcreg.cli.register import main
from tests.pcreg.cli.register.commands import FAST

pytestmark = pytest.mark.usefixtures("in_process")
FPFH = [*FAST, "--descriptor", "fpfh"]


@pytest.fixture(scope="module")
def pairs(scans, other, tmp_path_factory):
    """A list of three pairs: one that overlaps, one that does not, and one with a file that is missing."""
    path = tmp_path_factory.mktemp("list") / "pairs.csv"
    path.write_text(f"{scans[0]},{scans[1]}\n{other},{scans[1]}\nmissing.ply,{scans[1]}\n")
    return path


def test_json_is_the_result_alone_in_one_line(scans, tmp_path, capsys):
    assert main([*map(str, scans), *FPFH, "--json", "--no-picture", "--out", str(tmp_path)]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out) == json.loads((tmp_path / "result.json").read_text())
    assert captured.out.count("\n") == 1
    assert captured.err.startswith("registered, confidence")


def test_pictures_of_an_earlier_answer_go(scans, tmp_path):
    for name in ("result.json", "overview.png", "viewer.html"):
        (tmp_path / name).touch()
    assert main([*map(str, scans), *FPFH, "--no-picture", "--out", str(tmp_path)]) == 0
    assert {path.name for path in tmp_path.iterdir()} == {"result.json", "aligned.ply"}


def test_json_with_quiet_leaves_stderr_empty(scans, other, tmp_path, capsys):
    assert main([str(scans[0]), str(other), *FPFH, "--json", "--quiet", "--out", str(tmp_path)]) == 1
    captured = capsys.readouterr()
    assert json.loads(captured.out)["registered"] is False
    assert captured.err == ""


def test_verbose_logs_each_step_on_stderr(scans, tmp_path, capsys):
    assert main([*map(str, scans), *FPFH, "--verbose", "--no-picture", "--out", str(tmp_path)]) == 0
    captured = capsys.readouterr()
    steps = {line.split(": ")[0] for line in captured.err.splitlines()}
    assert steps == {"describe", "match", "estimate", "refine"}
    assert captured.out.startswith("registered, confidence")


def test_json_of_a_batch_is_a_line_per_pair(pairs, tmp_path, capsys):
    command = ["--batch", str(pairs), *FPFH, "--out", str(tmp_path)]
    assert main([*command, "--json"]) == 1
    captured = capsys.readouterr()
    records = [json.loads(line) for line in captured.out.splitlines()]
    assert records == [json.loads(line) for line in (tmp_path / "pairs.jsonl").read_text().splitlines()]
    assert [record["registered"] for record in records] == [True, False, False]
    assert "1 of 3 pairs registered" in captured.err
    assert "3 of 3 pairs to do" in captured.err

    (tmp_path / "pairs.jsonl").unlink()
    assert main([*command, "--quiet"]) == 1
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""
    assert (tmp_path / "pairs.jsonl").is_file()
