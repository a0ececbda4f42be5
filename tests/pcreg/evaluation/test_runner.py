"""The loop, its records and how it goes on, on clouds whose registration is known in advance."""

import json
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pcreg.evaluation import runner
from pcreg.evaluation.estimators import NativeRansac, Open3DRansac
from pcreg.evaluation.protocol import Protocol
from pcreg.evaluation.trial import score
from pcreg.features.base import Description
from pcreg.features.cache import FeatureCache
from pcreg.geometry.se3 import inverse, random_rotation, se3, transform
from pcreg.io.pairs import Pair
from pcreg.runtime.errors import InputError
from pcreg.runtime.records import Records
from pcreg.runtime.workers import executor_of, map_unordered

PROTOCOL = Protocol(name="toy", voxel=0.1, samples=(150, 60), gates=((2.0, 5.0), (0.2, 1.0)))
CHECKOUT = Path(__file__).resolve().parents[3]


class Distances:
    """Describes a point by its distances to three points that any view of the same cloud agrees on."""

    name = "distances"
    voxel = 0.1
    fingerprint = ""
    device = "cpu"

    def __init__(self):
        self.described = 0

    def describe(self, points):
        self.described += 1
        centre = points.mean(0)
        far = points[np.linalg.norm(points - centre, axis=1).argmax()]
        farther = points[np.linalg.norm(points - far, axis=1).argmax()]
        features = [np.linalg.norm(points - p, axis=1) for p in (centre, far, farther)]
        return Description(points, np.stack(features, axis=1).astype(np.float32))


class Nothing(Distances):
    def describe(self, points):
        return Description(points, np.empty((0, 3), np.float32))


class Rooms:
    """Views of a room per scene."""

    name = "rooms"
    left_out = ()

    def __init__(self, scenes=("a", "b"), views=3, information=True, compat=False):
        rng = np.random.default_rng(3)
        self.poses, self.rooms = {}, {}
        for scene in scenes:
            self.rooms[scene] = rng.uniform(-2, 2, (200, 3))
            for view in range(views):
                self.poses[f"{scene}/{view}"] = se3(random_rotation(rng), rng.normal(size=3))
        self.pairs = [
            Pair(
                source=f"{scene}/{j}",
                target=f"{scene}/{i}",
                T_target_source=(T := inverse(self.poses[f"{scene}/{i}"]) @ self.poses[f"{scene}/{j}"]),
                T_compat=se3(np.eye(3), np.array([0.03, 0, 0])) @ T if compat else None,
                scene=scene,
                information=np.diag([5.0, 5, 5, 10, 10, 10]) if information else None,
                consecutive=j - i == 1,
            )
            for scene in scenes
            for i in range(views)
            for j in range(i + 1, views)
        ]

    def cloud(self, name):
        return transform(inverse(self.poses[name]), self.rooms[name[0]])


def run(
    folder,
    dataset=None,
    descriptor=None,
    protocol=PROTOCOL,
    estimator=None,
    seeds=(0, 1),
    workers=0,
    cache=None,
    **about,
):
    records = Records(folder / "records.jsonl", {"seeds": list(seeds), **about})
    descriptor = descriptor or Distances()
    features = FeatureCache(cache or folder / "features", descriptor, {})
    return runner.run(
        dataset or Rooms(),
        descriptor,
        estimator or NativeRansac(),
        protocol,
        records,
        features,
        seeds=seeds,
        workers=workers,
    )


def untimed(records):
    """Records without what may differ between two runs: how long it took."""
    return [
        {**record, "describe_seconds": None, "trials": [{**t, "seconds": None} for t in record["trials"]]}
        for record in records
    ]


def test_known_motions_are_found_and_every_cloud_is_described_once(tmp_path):
    descriptor = Distances()
    records = run(tmp_path, Rooms(compat=True), descriptor)
    assert descriptor.described == 6
    assert len(records) == 6
    lines = [json.loads(line) for line in (tmp_path / "records.jsonl").read_text().splitlines()]
    assert lines == records
    for record, pair in zip(records, Rooms().pairs, strict=True):
        assert record["pair"] == pair.name
        assert record["points"] == [200, 200]
        assert record["overlap_measured"] == 1.0
        assert record["run"] == {"seeds": [0, 1]}
        trials = record["trials"]
        assert [(t["samples"], t["seed"]) for t in trials] == [(150, 0), (60, 0), (150, 1), (60, 1)]
        for trial in trials:
            assert trial["RTE"] < 1e-3
            assert trial["RRE"] < 0.1
            assert trial["rmse"] < 1e-3
            assert trial["information_rmse"] < 1e-3
            assert trial["compat"]["RTE"] == pytest.approx(0.03, abs=1e-3)
            assert trial["IR_curve"][9] == pytest.approx(trial["IR"], abs=1e-4)  # at tau1
            np.testing.assert_allclose(trial["T_target_source"], pair.T_target_source, atol=1e-3)
        # three of four points were drawn twice, then three of ten
        assert trials[0]["IR"] > trials[0]["IR_one_way"] > 0.5 > trials[1]["IR_one_way"]


def test_features_are_kept_for_the_next_run(tmp_path):
    first = run(tmp_path / "first", cache=tmp_path / "features")
    descriptor = Distances()
    second = run(tmp_path / "second", descriptor=descriptor, cache=tmp_path / "features")
    assert descriptor.described == 0
    assert untimed(second) == untimed(first)


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
            scored.append(untimed(record for _, record in found))
    one, two = scored
    assert one == two
    trials = [trial for record in one for trial in record["trials"]]
    assert 0.1 < trials[0]["IR_one_way"] < 0.6
    assert len({str(trial["T_target_source"]) for trial in trials}) == len(trials)  # none by chance the same


class Noisy(Distances):
    def describe(self, points):
        described = super().describe(points)
        noise = np.random.default_rng(int(1e6 * abs(points[0, 0]))).normal(
            scale=3, size=described.features.shape
        )
        features = np.where(np.arange(len(points))[:, None] % 2, described.features, noise)
        return Description(described.points, features.astype(np.float32))


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


SLOW_RUN = """
import sys, time
from pathlib import Path
from tests.pcreg.evaluation import test_runner as t

class Slow(t.NativeRansac):
    def estimate(self, *arguments):
        time.sleep(0.5)
        return super().estimate(*arguments)

if __name__ == "__main__":
    protocol = t.replace(t.PROTOCOL, samples=(150,))
    t.run(Path(sys.argv[1]), estimator=Slow(), workers=1, seeds=(0,), protocol=protocol)
"""


@pytest.mark.parametrize("signals", [[signal.SIGINT], [signal.SIGKILL]], ids=["Ctrl-C", "killed"])
def test_an_interruption_keeps_what_was_done_and_leaves_no_process(tmp_path, signals):
    script = tmp_path / "slow.py"
    script.write_text(SLOW_RUN)
    path = tmp_path / "records.jsonl"
    process = subprocess.Popen(
        [sys.executable, str(script), str(tmp_path)],
        cwd=tmp_path,
        env={"PYTHONPATH": str(CHECKOUT), "PATH": ""},
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    deadline = time.monotonic() + 60
    while not path.is_file() and time.monotonic() < deadline:
        time.sleep(0.05)
    children = _children(process.pid)
    for each in signals:
        process.send_signal(each)
    process.wait(timeout=30)
    done = len(path.read_text().splitlines())
    assert 1 <= done < 6
    while any(map(_runs, children)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(_runs, children))
    about = {"protocol": replace(PROTOCOL, samples=(150,)), "seeds": (0,)}
    resumed = [record["pair"] for record in run(tmp_path, **about)]
    assert resumed == [pair.name for pair in Rooms().pairs]
    assert len(path.read_text().splitlines()) == 6


def _children(pid):
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _runs(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except OSError:
        return False


def test_a_kill_within_the_first_line(tmp_path):
    (tmp_path / "records.jsonl").write_text('{"pair": "a/1->')
    assert len(run(tmp_path)) == 6


def test_a_folder_of_another_run_is_refused(tmp_path):
    run(tmp_path, descriptor_settings={"radius": 0.2})
    before = (tmp_path / "records.jsonl").read_bytes()
    with pytest.raises(InputError, match=r"descriptor_settings.radius is 0.2 there and 0.3 here.*out="):
        run(tmp_path, descriptor_settings={"radius": 0.3})
    assert (tmp_path / "records.jsonl").read_bytes() == before


def test_a_damaged_line_is_named(tmp_path):
    run(tmp_path)
    lines = (tmp_path / "records.jsonl").read_text().splitlines()
    lines[2] = lines[2][:50]
    (tmp_path / "records.jsonl").write_text("\n".join(lines) + "\n")
    with pytest.raises(InputError, match="line 3 is damaged"):
        run(tmp_path)


def test_descriptor_and_protocol_must_agree_on_the_voxel_size(tmp_path):
    with pytest.raises(InputError, match=r"set protocol.voxel=0.1"):
        run(tmp_path, protocol=replace(PROTOCOL, voxel=0.2))


def test_no_pairs(tmp_path):
    dataset = Rooms()
    dataset.pairs = []
    with pytest.raises(InputError, match="no pairs"):
        run(tmp_path, dataset=dataset)


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
