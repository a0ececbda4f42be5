"""The loop, its records and its tables, on clouds whose registration is known in advance."""

import json
import zlib
from dataclasses import replace

import numpy as np
import pytest

from pcreg import benchmark
from pcreg.descriptors import Description
from pcreg.errors import InputError
from pcreg.geometry import inverse, random_rotation, se3, transform
from pcreg.pair import Pair
from pcreg.protocol import Protocol
from pcreg.published import PUBLISHED
from pcreg.records import Records
from pcreg.tables import by_scene, caption, figures, overall, table

PROTOCOL = Protocol(name="toy", voxel=0.1, samples=150, gates=((2.0, 5.0), (0.2, 1.0)))


class Distances:
    """Describes a point by its distances to three points that any view of the same cloud agrees on."""

    name = "distances"
    voxel = 0.1

    def __init__(self):
        self.described = 0

    def describe(self, points):
        self.described += 1
        centre = points.mean(0)
        far = points[np.linalg.norm(points - centre, axis=1).argmax()]
        farther = points[np.linalg.norm(points - far, axis=1).argmax()]
        features = [np.linalg.norm(points - p, axis=1) for p in (centre, far, farther)]
        return Description(points, np.stack(features, axis=1).astype(np.float32))


class Rooms:
    """Views of a room per scene; `broken` is a cloud with too little in it to be registered."""

    def __init__(self, scenes=("a", "b"), views=3, information=True):
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
                T_target_source=inverse(self.poses[f"{scene}/{i}"]) @ self.poses[f"{scene}/{j}"],
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


def run(folder, dataset=None, descriptor=None, protocol=PROTOCOL, **about):
    records = Records(folder / "records.jsonl", {"seed": 0, **about})
    return benchmark.run(dataset or Rooms(), descriptor or Distances(), protocol, records)


def test_known_motions_are_found_and_every_cloud_is_described_once(tmp_path):
    descriptor = Distances()
    records = run(tmp_path, descriptor=descriptor)
    assert descriptor.described == 6
    assert len(records) == 6
    lines = [json.loads(line) for line in (tmp_path / "records.jsonl").read_text().splitlines()]
    assert lines == records
    for record, pair in zip(records, Rooms().pairs, strict=True):
        assert record["pair"] == pair.name
        assert record["points"] == [150, 150]
        assert record["IR"] > record["IR_one_way"] > 0.5  # three of four points were drawn twice
        assert record["RTE"] < 1e-3
        assert record["RRE"] < 0.1
        assert record["rmse"] < 1e-3
        assert record["information_rmse"] < 1e-3
        assert record["run"] == {"seed": 0}
        np.testing.assert_allclose(record["T_target_source"], pair.T_target_source, atol=1e-3)
    total = overall(records, PROTOCOL)
    assert [total[key] for key in ("FMR", "RR", "RR_rmse", "RR_2m_5deg", "RR_0.2m_1deg")] == [1.0] * 5
    assert (total["pairs"], total["pairs_RR"]) == (6, 2)


def test_a_run_goes_on_where_it_was_killed(tmp_path):
    whole = run(tmp_path / "whole")
    path = tmp_path / "killed" / "records.jsonl"
    path.parent.mkdir()
    lines = (tmp_path / "whole" / "records.jsonl").read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:4]) + lines[4][:100])
    descriptor = Distances()
    resumed = run(tmp_path / "killed", descriptor=descriptor)
    assert descriptor.described == 3  # pairs of scene b only
    untimed = [[{**r, "seconds": None} for r in records] for records in (whole, resumed)]
    assert untimed[0] == untimed[1]
    assert len(path.read_text().splitlines()) == 6


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

    class Nothing(Distances):
        def describe(self, points):
            return Description(points, np.empty((0, 3), np.float32))

    records = run(tmp_path, dataset=dataset, descriptor=Nothing())
    assert {records[0][key] for key in ("RTE", "RRE", "rmse", "information_rmse")} == {None}
    total = overall(records, PROTOCOL)
    assert [total[key] for key in ("IR", "FMR", "RR", "RR_rmse", "RR_2m_5deg")] == [0.0] * 5
    assert np.isnan(total["RTE"])
    assert "a" in table(records, PROTOCOL, "toy")


def test_drawn_points_are_a_repeatable_random_subset():
    points = np.random.default_rng(0).uniform(size=(300, 3))
    seeds = [[0, zlib.crc32(b"a")], [0, zlib.crc32(b"b")], [1, zlib.crc32(b"a")]]
    first, *others = (benchmark.draw(Distances(), points, 100, seed).points for seed in [seeds[0], *seeds])
    assert len(np.unique(first, axis=0)) == 100
    np.testing.assert_array_equal(first, others[0])
    assert all((first != other).any() for other in others[1:])
    assert len(benchmark.draw(Distances(), points, None, [0]).points) == 300
    assert len(benchmark.draw(Distances(), points, 1000, [0]).points) == 300


def record(scene, consecutive=False, IR=0.5, RTE=0.1, RRE=0.1, rmse=0.1, information_rmse=0.1):
    return {
        "scene": scene,
        "consecutive": consecutive,
        "IR": IR,
        "IR_one_way": IR / 2,
        "RTE": RTE,
        "RRE": RRE,
        "rmse": rmse,
        "information_rmse": information_rmse,
        "seconds": {"match": 1.0, "ransac": 2.0},
    }


def test_figures_of_records_written_by_hand():
    scored = [
        record("a", IR=0.08, RTE=1.0, RRE=6.0, rmse=0.3, information_rmse=0.2),
        record("a", IR=0.05, RTE=3.0, RRE=1.0, rmse=None, information_rmse=None),
        record("a", consecutive=True, IR=0.2, RTE=0.1, RRE=0.2, information_rmse=0.9),
        record("b", IR=0.2),
    ]
    a = by_scene(scored, PROTOCOL)["a"]
    assert (a["pairs"], a["pairs_RR"]) == (3, 2)
    assert a["RR"] == 0.5  # 0.2 m is still a success, not found is not, the neighbour does not count
    assert (a["FMR"], a["FMR_one_way"]) == pytest.approx((2 / 3, 1 / 3))
    assert a["IR"] == pytest.approx(0.11)
    assert a["RR_rmse"] == pytest.approx(1 / 3)
    assert a["RR_2m_5deg"] == pytest.approx(1 / 3)
    assert (a["RTE"], a["RRE"]) == pytest.approx((0.1, 0.2))
    assert (a["RTE_separate"], a["RRE_separate"]) == pytest.approx((0.55, 0.6))
    assert a["seconds"] == 3.0
    assert overall(scored, PROTOCOL)["RR"] == pytest.approx((0.5 + 1) / 2)
    assert overall(scored, replace(PROTOCOL, scene_mean=False))["RR"] == pytest.approx(2 / 3)


def test_the_table_carries_protocol_counts_and_published_figures():
    scored = [record("a"), record("a"), record("b")]
    text = table(scored, PROTOCOL, "toy, distances", PUBLISHED["3DMatch"])
    for words in ("3 pairs", "150 random points", "0.1 m cell", "mean of scenes", "52.8", "85.1", "Table 2"):
        assert words in text
    assert "information-matrix" in text


def test_without_information_matrices_the_official_recall_is_left_out(tmp_path):
    records = run(tmp_path, dataset=Rooms(information=False))
    assert "RR" not in figures(records, PROTOCOL)
    assert "official recall is left out" in caption(records, PROTOCOL)


@pytest.mark.parametrize(
    ("wrong", "named"), [({"voxel": 0}, "voxel"), ({"samples": 2}, "samples"), ({"n": 2}, "protocol.n")]
)
def test_an_impossible_protocol_is_refused(wrong, named):
    with pytest.raises(InputError, match=named):
        replace(PROTOCOL, **wrong)


def test_lengths_follow_the_voxel_size():
    protocol = Protocol(name="own", voxel=0.3)
    assert (protocol.tau1, protocol.distance) == pytest.approx((0.6, 0.45))
