import pickle
from collections import Counter

import numpy as np
import pytest
import torch

from pcreg.datasets.threedmatch import ThreeDMatch
from pcreg.geometry.se3 import inverse, rotation_about, se3, transform
from pcreg.io.cloud import write_ply
from pcreg.runtime.errors import InputError

# Two scenes of fragments; a fragment is the same corner of a room, seen from its own pose.
WORLD = np.random.default_rng(0).uniform(0, 2, (20, 3))
POSES = [se3(rotation_about(np.array([1.0, 2, 3]), 20 * n), np.array([n, 0.5, -n / 2])) for n in range(4)]
FRAGMENTS = [transform(inverse(pose), WORLD) for pose in POSES]
LISTED = {"kitchen": [(0, 1), (0, 3)], "hotel": [(3, 2)]}  # (i, j): j moves into i


def motion(i, j):
    return inverse(POSES[i]) @ POSES[j]


def entries(pairs, matrix):
    """The text of a gt.log or gt.info, with the mixture of tabs and blanks met in the wild."""
    blocks = []
    for i, j in pairs:
        rows = [" " + "\t ".join(f"{value:.8e}" for value in row) + "\t" for row in matrix(i, j)]
        blocks.append("\n".join([f"{i}\t {j}\t 4\t", *rows]))
    return "\n".join(blocks) + "\n"


def write_fragments(folder, suffix=".ply"):
    for scene in LISTED:
        (folder / scene).mkdir(parents=True, exist_ok=True)
        for number, points in enumerate(FRAGMENTS):
            if suffix == ".ply":
                write_ply(folder / scene / f"cloud_bin_{number}.ply", points)
            else:
                torch.save(points.astype(np.float32), folder / scene / f"cloud_bin_{number}.pth")


def write_logs(folder, name="{}"):
    for scene, pairs in LISTED.items():
        place = folder / name.format(scene)
        place.mkdir(parents=True, exist_ok=True)
        (place / "gt.log").write_text(entries(pairs, motion))
        (place / "gt.info").write_text(entries(pairs, lambda i, j: (10 * i + j) * np.eye(6)))
        (place / "gt_overlap.log").write_text("0,1,0.75\n0,2,0.0\n0,3,0.25\n3,2,0.5\n")


def predator_lists(prefix="test"):
    lists = {"src": [], "tgt": [], "rot": [], "trans": [], "overlap": []}
    for scene, pairs in LISTED.items():
        for i, j in pairs:
            lists["src"].append(f"{prefix}/{scene}/cloud_bin_{j}.pth")
            lists["tgt"].append(f"{prefix}/{scene}/cloud_bin_{i}.pth")
            lists["rot"].append(motion(i, j)[:3, :3])
            lists["trans"].append(motion(i, j)[:3, 3:])
            lists["overlap"].append(np.float64(0.5))
    return lists


def geotransformer_lists():
    keys = ("pcd1", "pcd0", "rotation", "translation", "overlap")
    rows = (dict(zip(keys, row, strict=True)) for row in zip(*predator_lists().values(), strict=True))
    return [row | {"translation": row["translation"][:, 0], "overlap": 0.5} for row in rows]


def assert_pairs_fit(dataset):
    """All pairs are there, the second number is the source, and truth moves it onto the target."""
    assert Counter((pair.scene, pair.source, pair.target) for pair in dataset.pairs) == Counter(
        (scene, f"{scene}/cloud_bin_{j}", f"{scene}/cloud_bin_{i}")
        for scene, pairs in LISTED.items()
        for i, j in pairs
    )
    for pair in dataset.pairs:
        source, target = dataset.cloud(pair.source), dataset.cloud(pair.target)
        assert source.dtype == np.float64
        np.testing.assert_allclose(transform(pair.T_target_source, source), target, atol=1e-5)
        assert pair.consecutive == (pair.name != "kitchen/cloud_bin_3->kitchen/cloud_bin_0")


@pytest.mark.parametrize(
    ("fragments", "logs", "name"),
    [
        ("", "", "{}-evaluation"),  # the original download
        ("test", "3DMatch", "{}"),
        ("data/test", "metadata/benchmarks/3DMatch", "{}"),
    ],
)
@pytest.mark.parametrize("suffix", [".ply", ".pth"])
def test_logs_are_found_beside_either_kind_of_fragment(tmp_path, fragments, logs, name, suffix):
    write_fragments(tmp_path / fragments, suffix)
    write_logs(tmp_path / logs, name)
    dataset = ThreeDMatch(tmp_path)
    assert_pairs_fit(dataset)
    assert [pair.scene for pair in dataset.pairs] == ["hotel", "kitchen", "kitchen"]
    assert [pair.overlap for pair in dataset.pairs] == [0.5, 0.75, 0.25]
    assert [pair.information[5, 5] for pair in dataset.pairs] == [32, 1, 3]


@pytest.mark.parametrize("folder", ["", "metadata"])
@pytest.mark.parametrize(
    "lists", [predator_lists(), geotransformer_lists()], ids=["predator", "geotransformer"]
)
def test_pickled_lists_are_read_in_both_forms(tmp_path, lists, folder):
    write_fragments(tmp_path / "test", ".pth")
    (tmp_path / folder).mkdir(exist_ok=True)
    (tmp_path / folder / "3DLoMatch.pkl").write_bytes(pickle.dumps(lists))
    dataset = ThreeDMatch(tmp_path, "3DLoMatch")
    assert_pairs_fit(dataset)
    assert all(pair.overlap == 0.5 and pair.information is None for pair in dataset.pairs)
    (tmp_path / "3DMatch.pkl").write_bytes(pickle.dumps(predator_lists()))  # whose overlaps are wrong
    assert {pair.overlap for pair in ThreeDMatch(tmp_path).pairs} == {None}
    write_logs(tmp_path / "benchmarks/3DMatch")  # and which come after logs
    assert all(pair.information is not None for pair in ThreeDMatch(tmp_path).pairs)


@pytest.mark.parametrize(("benchmark", "file"), [("train", "train_info.pkl"), ("val", "val_info.pkl")])
def test_training_lists_hold_arrays_and_lie_under_train(tmp_path, benchmark, file):
    write_fragments(tmp_path / "train", ".pth")
    lists = predator_lists(prefix="train")
    lists |= {key: np.stack(lists[key]) for key in ("rot", "trans", "overlap")}
    (tmp_path / file).write_bytes(pickle.dumps(lists))
    assert_pairs_fit(ThreeDMatch(tmp_path, benchmark))


def test_bad_input_names_the_file_or_key_and_the_remedy(tmp_path):
    with pytest.raises(InputError, match=r"gt.log files .* 3DMatch.pkl; docs/data.md"):
        ThreeDMatch(tmp_path)
    with pytest.raises(InputError, match=r"benchmark=4DMatch: .* choose one of"):
        ThreeDMatch(tmp_path, "4DMatch")
    write_logs(tmp_path / "benchmarks/3DMatch")
    with pytest.raises(InputError, match=r"scenes=attic: .* list: hotel, kitchen"):
        ThreeDMatch(tmp_path, scenes=["hotel", "attic"])
    with pytest.raises(InputError, match=r"no fragment hotel/cloud_bin_3 .*data.scenes"):
        ThreeDMatch(tmp_path).cloud("hotel/cloud_bin_3")
    (tmp_path / "hotel").mkdir()
    torch.save(np.zeros((5, 2)), tmp_path / "hotel/cloud_bin_0.pth")
    with pytest.raises(InputError, match=r"cloud_bin_0.pth: holds an array of shape \(5, 2\)"):
        ThreeDMatch(tmp_path).cloud("hotel/cloud_bin_0")


def test_damaged_lists_are_bad_input(tmp_path):
    write_logs(tmp_path / "benchmarks/3DMatch")
    (tmp_path / "benchmarks/3DMatch/hotel/gt.info").rename(tmp_path / "gt.info")
    with pytest.raises(InputError, match=r"hotel: lacks gt.info, which other scenes have"):
        ThreeDMatch(tmp_path)
    damaged = (tmp_path / "gt.info").read_text().replace("0.00000000e+00", "nan", 1)
    (tmp_path / "benchmarks/3DMatch/hotel/gt.info").write_text(damaged)
    with pytest.raises(InputError, match=r"hotel/gt.info: .* truncated"):
        ThreeDMatch(tmp_path)
    (tmp_path / "gt.info").replace(tmp_path / "benchmarks/3DMatch/hotel/gt.info")
    log = tmp_path / "benchmarks/3DMatch/kitchen/gt.log"
    whole = log.read_text()
    for text in (whole[:-20], whole.replace("3", "nan", 1), whole.replace("3", "inf", 1), 2 * whole, ""):
        log.write_text(text)
        with pytest.raises(InputError, match=r"kitchen/gt.log: .* truncated"):
            ThreeDMatch(tmp_path)
    log.write_text(entries([(0, 3)], lambda i, j: motion(i, j) * 1.1))
    with pytest.raises(InputError, match=r"kitchen/gt.log: the motion of pair \(0, 3\) is not a rotation"):
        ThreeDMatch(tmp_path)
    log.write_text(whole.replace("0\t 3", "0\t 2"))
    with pytest.raises(InputError, match=r"gt.info: lacks pair \(0, 2\)"):
        ThreeDMatch(tmp_path)
    for content in ({"src": []}, [1, 2], np.ones(2), predator_lists() | {"src": ["elsewhere.npy"] * 3}):
        (tmp_path / "3DLoMatch.pkl").write_bytes(pickle.dumps(content))
        with pytest.raises(InputError, match=r"3DLoMatch.pkl: is no pair list of Predator or GeoTransformer"):
            ThreeDMatch(tmp_path, "3DLoMatch")


@pytest.mark.parametrize("lists", [predator_lists, geotransformer_lists])
def test_a_pickled_motion_that_is_not_rigid_is_refused_by_file_and_pair(tmp_path, lists):
    content = lists()
    if isinstance(content, dict):
        content["rot"][1] = 2 * content["rot"][1]
    else:
        content[1]["rotation"] = 2 * content[1]["rotation"]
    (tmp_path / "3DLoMatch.pkl").write_bytes(pickle.dumps(content))
    pair = "pair kitchen/cloud_bin_3->kitchen/cloud_bin_0"
    with pytest.raises(InputError, match=f"3DLoMatch.pkl: the motion of {pair} is not a rotation"):
        ThreeDMatch(tmp_path, "3DLoMatch")


@pytest.mark.parametrize(
    ("benchmark", "pairs", "not_consecutive"),
    [("3DMatch", (506, 208, 54), (449, 159, 26)), ("3DLoMatch", (525, 230, 49), (524, 222, 42))],
)
def test_real_scenes_have_the_official_pairs(real_data, benchmark, pairs, not_consecutive):
    dataset = ThreeDMatch(real_data / "indoor/3dmatch", benchmark)
    assert tuple(Counter(pair.scene for pair in dataset.pairs).values()) == pairs
    assert (
        tuple(Counter(pair.scene for pair in dataset.pairs if not pair.consecutive).values())
        == not_consecutive
    )
    low, high = (0.1, 0.3) if benchmark == "3DLoMatch" else (0.13, 1.0)
    assert all(low <= pair.overlap <= high and pair.information.shape == (6, 6) for pair in dataset.pairs)


def test_real_layouts_agree(real_data):
    original = ThreeDMatch(real_data / "indoor/3dmatch")
    preprocessed = ThreeDMatch(real_data / "indoor/3dmatch_pth")
    assert len(preprocessed.pairs) == 1623
    assert sum(not pair.consecutive for pair in preprocessed.pairs) == 1279
    same = {pair.name: pair for pair in preprocessed.pairs}
    for pair in original.pairs:
        np.testing.assert_allclose(same[pair.name].T_target_source, pair.T_target_source, atol=1.2e-3)
    name = "7-scenes-redkitchen/cloud_bin_1"
    assert preprocessed.cloud(name).shape == original.cloud(name).shape == (19082, 3)
    with pytest.raises(InputError, match="no fragment 7-scenes-redkitchen/cloud_bin_9"):
        preprocessed.cloud("7-scenes-redkitchen/cloud_bin_9")
