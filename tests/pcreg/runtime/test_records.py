"""Files of records, and the fingerprint of the code that computed what is kept on disk."""

import json
import shutil

import grimp
import pytest

from pcreg.runtime import records
from pcreg.runtime.errors import InputError
from pcreg.runtime.records import DESCRIBING, EVALUATING, PACKAGE, REGISTERING, Records, code_fingerprint


@pytest.fixture(scope="module")
def graph():
    return grimp.build_graph("pcreg")


@pytest.mark.parametrize(
    ("module", "places"),
    [
        ("features.cache", DESCRIBING),
        ("features.fcgf", DESCRIBING),
        ("features.fpfh", DESCRIBING),
        ("registration.clouds.stored", REGISTERING),
        ("registration.batch", REGISTERING),
        ("evaluation.runner", EVALUATING),
        ("datasets.altered", EVALUATING),
        ("datasets.kitti", ("arrays.py", "geometry", "io", "datasets/kitti.py")),
        ("datasets.odometry", ("arrays.py", "geometry", "io", "registration", "datasets/odometry.py")),
    ],
)
def test_all_that_a_result_depends_on_is_covered(module, places, graph):
    """All modules that are ever imported are in these places, or have nothing to do with clouds."""
    for name in {f"pcreg.{module}"} | graph.find_upstream_modules(f"pcreg.{module}"):
        path = name.partition(".")[2].replace(".", "/")
        covered = any(path == place.removesuffix(".py") or path.startswith(f"{place}/") for place in places)
        is_for_gpus = places[0] == "arrays.py" and path.startswith("kernels")  # truth is found on the CPU
        assert covered or is_for_gpus or path.startswith("runtime") or path in places, name


def test_an_edit_of_a_covered_file_changes_it_and_one_elsewhere_does_not(tmp_path, monkeypatch):
    shutil.copytree(PACKAGE / "geometry", tmp_path / "geometry")
    shutil.copytree(PACKAGE / "io", tmp_path / "io")
    monkeypatch.setattr(records, "PACKAGE", tmp_path)

    def fingerprints():
        code_fingerprint.cache_clear()
        return [code_fingerprint(*each) for each in (["geometry"], ["io/cloud.py"], ["geometry", "io"])]

    first = fingerprints()
    with (tmp_path / "io/cloud.py").open("a") as stream:
        stream.write("# edited\n")
    second = fingerprints()
    (tmp_path / "geometry/se3.py").rename(tmp_path / "geometry/se4.py")
    third = fingerprints()
    assert [a == b for a, b in zip(first, second, strict=True)] == [True, False, False]
    assert [a == b for a, b in zip(second, third, strict=True)] == [False, True, False]
    code_fingerprint.cache_clear()
    assert "weights/verdict.safetensors" in REGISTERING  # the confidence model


def test_half_a_line_is_dropped_and_lines_are_brought_into_order(tmp_path):
    path = tmp_path / "records.jsonl"
    for name in "ca":
        Records(path, {"seed": 1}).add({"pair": name})
    with path.open("a") as file:
        file.write('{"pair": "b", "ru')
    again = Records(path, {"seed": 1})
    again.add({"pair": "b"})
    for order in ("cab", "abc"):
        assert [json.loads(line)["pair"] for line in path.read_text().splitlines()] == list(order)
        again.order(["a", "b", "c"])
    with pytest.raises(InputError, match=r"\(seed is 1 there and 2 here\); use the same, or give"):
        Records(path, {"seed": 2})
