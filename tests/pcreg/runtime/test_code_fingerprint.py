"""Whatever computes what is kept on disk changes the fingerprint that it is kept under."""

import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from pcreg.datasets.icp_truth import icp
from pcreg.evaluation.estimators import NativeRansac
from pcreg.evaluation.protocol import Protocol
from pcreg.evaluation.trial import score
from pcreg.features import cache
from pcreg.features.cache import FeatureCache
from pcreg.features.fcgf import FCGF
from pcreg.features.fpfh import FPFH
from pcreg.io.cloud import write_ply
from pcreg.registration.registrar import Registrar
from pcreg.registration.strategy import batch
from pcreg.runtime.code_fingerprint import code_fingerprint, named_in, sources
from tests.pcreg.scenes import wavy_sheet
from tests.pcreg.tiny import Sheets, network

CHECKOUT = Path(__file__).resolve().parents[3]

EDITED = """
import json, sys
from pathlib import Path
from pcreg.runtime import code_fingerprint as module

here, names, files = json.load(sys.stdin)
assert Path(module.__file__).is_relative_to(here)

def fingerprints():
    for each in (module.code_fingerprint, module._imported, module._source):
        each.cache_clear()
    return {name: module.code_fingerprint(name) for name in names}

for file in files:
    before = fingerprints()
    with Path(here, file).open("a") as stream:
        stream.write("# edited\\n")
    print(json.dumps([name for name, now in fingerprints().items() if now != before[name]]))
"""


def test_an_edit_anywhere_below_changes_it_and_one_elsewhere_does_not(tmp_path):
    # A copy, as a wheel lays it out.
    shutil.copytree(CHECKOUT / "pcreg", tmp_path / "pcreg")
    fcgf, fpfh, trial = "pcreg.features.fcgf", "pcreg.features.fpfh", "pcreg.evaluation.trial"
    many, icp_truth, odometry = (
        "pcreg.registration.strategy.batch",
        "pcreg.datasets.icp_truth",
        "pcreg.datasets.odometry",
    )
    changed = {
        "pcreg/kernels/cells.py": [fcgf, fpfh, trial, many],  # FPFH and RANSAC may run on a GPU
        "pcreg/registration/judge/confidence.py": [many],
        "pcreg/registration/estimation/ransac.py": [trial, many],
        "pcreg/io/formats/bin.py": [many, icp_truth],
        "pcreg/datasets/odometry.py": [odometry],
        "pcreg/viz/render.py": [],
    }
    names = [fcgf, fpfh, trial, many, icp_truth, odometry]
    run = subprocess.run(
        [sys.executable, "-c", EDITED],
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        cwd=tmp_path,
        input=json.dumps([str(tmp_path), names, list(changed)]),
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    found = [json.loads(line) for line in run.stdout.splitlines()]
    assert dict(zip(changed, found, strict=True)) == changed


def modules_at_work(do):
    """The modules of the package whose code runs while `do` does."""
    seen = set()

    def note(frame, *_):
        seen.add(frame.f_globals.get("__name__", ""))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        do()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return {name for name in seen if name.startswith("pcreg.")}


@pytest.mark.parametrize("descriptor", [FPFH(0.1), FCGF(network())], ids=["fpfh", "fcgf"])
def test_all_that_describes_is_covered(descriptor, tmp_path):
    kept = FeatureCache(tmp_path, descriptor, {})
    kept.file_of(wavy_sheet(100))  # imports what others made, which would take long below
    at_work = modules_at_work(lambda: kept.file_of(wavy_sheet(500)))
    assert at_work > {"pcreg.features.cache", "pcreg.geometry.voxel_grid"}
    assert at_work <= sources(cache.__name__, type(descriptor).__module__).keys()


def test_all_that_scores_is_covered(tmp_path):
    dataset, protocol = Sheets(1), Protocol("test", 0.1, iterations=100, gates=((0.1, 1.0),))
    (pair,) = dataset.pairs
    kept = FeatureCache(tmp_path, FPFH(0.1), {})
    files = {name: kept.file_of(dataset.cloud(name)) for name in (pair.source, pair.target)}
    at_work = modules_at_work(lambda: score(files, protocol, NativeRansac(), (0,), pair))
    assert "pcreg.registration.estimation.ransac" in at_work
    assert at_work <= sources(score.__module__, NativeRansac.__module__).keys()


def test_all_that_a_batch_does_is_covered(tmp_path):
    for name in ("a", "b"):
        write_ply(tmp_path / f"{name}.ply", wavy_sheet(600))
    pairs = batch.pairs_of(str(tmp_path / "*.ply"))
    at_work = modules_at_work(
        lambda: batch.run(Registrar(descriptor="fpfh", voxel=0.1), pairs, tmp_path / "out", workers=0)
    )
    assert {"pcreg.registration.estimation.ransac", "pcreg.features.fpfh"} < at_work
    assert at_work <= sources(batch.__name__).keys()


def test_all_that_corrects_is_covered():
    points = wavy_sheet(500)
    at_work = modules_at_work(lambda: icp(points, points, np.eye(4)))
    assert at_work <= sources(icp.__module__).keys()


def test_what_is_defined_elsewhere_counts_with_what_it_imports():
    found = sources(__name__)
    assert found[__name__] == Path(__file__)
    assert "pcreg.features.fpfh" in found
    assert not {name for name in found if name.split(".")[0] not in ("pcreg", "tests")}


def test_a_name_within_a_module_means_the_module():
    assert code_fingerprint("pcreg.features.fcgf.FCGF.load") == code_fingerprint("pcreg.features.fcgf")
    assert code_fingerprint("pcreg.features.fcgf") != code_fingerprint("pcreg.features.fpfh")


def test_a_configuration_names_classes_and_the_functions_that_they_are_given():
    settings = {
        "data": {"_target_": "pcreg.datasets.simulated.recorded.Recorded", "seed": 3, "unit": "m"},
        "of": [{"path": "pcreg.datasets.simulated.indoor.record"}, "torch.optim.SGD"],
    }
    names = list(named_in(settings))
    assert names == ["pcreg.datasets.simulated.recorded.Recorded", "pcreg.datasets.simulated.indoor.record"]
    assert "pcreg.datasets.simulated.raycast" in sources(*names)
