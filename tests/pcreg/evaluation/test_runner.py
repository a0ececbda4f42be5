"""The loop and its records, on clouds whose registration is known in advance, and runs that were stopped."""

import json
import signal
import subprocess
import time
from dataclasses import replace

import numpy as np
import pytest

from pcreg.evaluation.estimators import NativeRansac, Open3DRansac
from pcreg.evaluation.trial import score
from pcreg.features.cache import FeatureCache
from pcreg.registration.estimation.ransac import ransac
from pcreg.runtime.errors import InputError
from pcreg.runtime.workers import executor_of, map_unordered
from tests.pcreg.evaluation.toys import ONE_DRAW, PROTOCOL, Distances, Noisy, Nothing, Rooms, run, untimed
from tests.processes import started


class OnMatches(NativeRansac):
    """RANSAC without refinement: the matches are exact, but points without a partner would bias ICP."""

    def estimate(self, given, protocol, seed):
        return ransac(*given.sides, distance=protocol.distance, seed=seed)[0]


def test_known_motions_are_found_and_every_cloud_is_described_once(tmp_path):
    descriptor = Distances()
    records = run(tmp_path, Rooms(), descriptor, estimator=OnMatches())
    assert descriptor.described == len(records) == 6
    lines = [json.loads(line) for line in (tmp_path / "records.jsonl").read_text().splitlines()]
    assert lines == records
    for record, pair in zip(records, Rooms().pairs, strict=True):
        assert (record["pair"], record["points"], record["overlap_measured"]) == (pair.name, [200, 200], 1.0)
        assert record["run"] == {"seeds": [0, 1]}
        trials = record["trials"]
        assert [(t["samples"], t["seed"]) for t in trials] == [(150, 0), (60, 0), (150, 1), (60, 1)]
        for trial in trials:
            assert trial["RRE"] < 0.1
            assert max(trial["RTE"], trial["rmse"], trial["information_rmse"]) < 1e-3
            assert trial["IR_curve"][9] == pytest.approx(trial["IR"], abs=1e-4)  # at tau1
            np.testing.assert_allclose(trial["T_target_source"], pair.T_target_source, atol=1e-3)
        # three of four points were drawn twice, then three of ten
        assert trials[0]["IR"] > trials[0]["IR_one_way"] > 0.5 > trials[1]["IR_one_way"]


def test_records_do_not_depend_on_the_number_of_workers(tmp_path):
    """Half of the features are noise, so that Open3D's RANSAC has something to get wrong."""
    dataset, protocol = Rooms(), replace(PROTOCOL, distance=0.02, mutual=False)
    features = FeatureCache(tmp_path, Noisy(), {})
    files = {name: features.file_of(dataset.cloud(name)) for name in dataset.poses}
    shared = (files, protocol, Open3DRansac(), (0, 1))
    scored = []
    for count in (1, 2):
        with executor_of(count) as executor:
            found = map_unordered(executor, score, shared, dataset.pairs)
            found = sorted(found, key=lambda each: each[0].name)
            scored.append(untimed([record for _, record in found]))
    one, two = scored
    assert one == two
    trials = [trial for record in one for trial in record["trials"]]
    assert 0.1 < trials[0]["IR_one_way"] < 0.6
    assert len({str(trial["T_target_source"]) for trial in trials}) == len(trials)  # none by chance the same


def test_a_damaged_line_is_named(tmp_path):
    run(tmp_path)
    lines = (tmp_path / "records.jsonl").read_text().splitlines()
    lines[2] = lines[2][:50]
    (tmp_path / "records.jsonl").write_text("\n".join(lines) + "\n")
    with pytest.raises(InputError, match="line 3 is damaged"):
        run(tmp_path)


def test_records_of_other_poses_are_refused(tmp_path):
    run(tmp_path)
    record, *others = (tmp_path / "records.jsonl").read_text().splitlines(True)
    moved = json.loads(record) | {"truth": np.diag([1.0, -1, -1, 1]).tolist()}
    (tmp_path / "records.jsonl").write_text(json.dumps(moved) + "\n" + "".join(others))
    with pytest.raises(InputError, match="was measured against other poses; delete"):
        run(tmp_path)


def test_descriptor_and_protocol_must_agree_on_the_voxel_size(tmp_path):
    with pytest.raises(InputError, match=r"set protocol.voxel=0.1"):
        run(tmp_path, protocol=replace(PROTOCOL, voxel=0.2))


def test_an_empty_cloud_is_a_failure_and_no_crash(tmp_path):
    dataset = Rooms(scenes=("a",))
    dataset.rooms["a"] = dataset.rooms["a"][:0]
    for number, protocol in enumerate((PROTOCOL, replace(PROTOCOL, draw="matches"))):
        for estimator in (NativeRansac(), Open3DRansac()):
            folder = tmp_path / f"{number}{estimator.name}"
            record, *_ = run(folder, dataset, Nothing(), protocol, estimator)
            for trial in record["trials"]:
                errors = {trial[key] for key in ("RTE", "RRE", "rmse", "information_rmse", "T_target_source")}
                assert errors == {None}
                assert (trial["IR"], trial["matches"], trial["inliers"]) == (0.0, 0, 0)


SLOW_RUN = """
import sys
from pathlib import Path
from tests.pcreg.evaluation import toys as t

if __name__ == "__main__":
    t.run(Path(sys.argv[1]), estimator=t.Slow(0.5), workers=1, seeds=(0,), protocol=t.ONE_DRAW)
"""


def test_a_run_goes_on_where_it_was_killed(tmp_path):
    whole = run(tmp_path / "whole")
    path = tmp_path / "killed" / "records.jsonl"
    path.parent.mkdir()
    lines = (tmp_path / "whole" / "records.jsonl").read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:4]) + lines[4][:100])
    descriptor = Distances()
    resumed = run(tmp_path / "killed", descriptor=descriptor)
    assert descriptor.described == 3  # pairs of scene b only
    assert untimed(whole) == untimed(resumed)
    assert len(path.read_text().splitlines()) == 6


def test_an_interruption_keeps_what_was_done_and_leaves_no_process(tmp_path):
    script = tmp_path / "slow.py"
    script.write_text(SLOW_RUN)
    path = tmp_path / "records.jsonl"
    process = started(script, tmp_path, stderr=subprocess.DEVNULL, start_new_session=True)
    deadline = time.monotonic() + 60
    while not path.is_file() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)  # until no process holds the other end
    done = len(path.read_text().splitlines())
    assert 1 <= done < 6
    resumed = [record["pair"] for record in run(tmp_path, protocol=ONE_DRAW, seeds=(0,))]
    assert resumed == [pair.name for pair in Rooms().pairs]
    assert len(path.read_text().splitlines()) == 6
