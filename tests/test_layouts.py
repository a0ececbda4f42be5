"""The whole benchmark on trees laid out as the real downloads are, made of a few real clouds.

File names, pickled fields and dtypes are those of the archives; the figures must not depend on them.
"""

import pickle
import runpy
import shutil

import numpy as np
import pytest
import torch

from pcreg.cli.config import compose_config
from pcreg.cli.evaluate import evaluate
from pcreg.datasets.threedmatch import read_log
from pcreg.io.cloud import read_cloud
from tests.datasets.test_threedmatch import entries, geotransformer_lists, predator_lists

pytestmark = pytest.mark.usefixtures("in_process")
SCENE = "7-scenes-redkitchen"
PAIRS = [(0, 1), (0, 2)]  # (i, j): j moves into i; the first is left out of the official recall


def matrix_of(path, size):
    """The matrix of a pair (i, j) in a gt.log or gt.info."""
    matrices = read_log(path, size)
    return lambda *pair: matrices[pair]


def write_logs(folder, gt):
    folder.mkdir(parents=True)
    for name, size in (("gt.log", 4), ("gt.info", 6)):
        (folder / name).write_text(entries(PAIRS, matrix_of(gt / name, size)))


def original(root, clouds, gt):
    (root / SCENE).mkdir(parents=True)
    for number, cloud in enumerate(clouds):
        shutil.copy(cloud, root / SCENE / f"cloud_bin_{number}.ply")
    write_logs(root / f"{SCENE}-evaluation", gt)


def write_pth(folder, clouds):
    folder.mkdir(parents=True)
    for number, cloud in enumerate(clouds):
        torch.save(read_cloud(cloud).points.astype(np.float64), folder / f"cloud_bin_{number}.pth")


def predator(root, clouds, gt):
    """The archive `indoor`: fragments in test/, one pickled dict of lists."""
    write_pth(root / "test" / SCENE, clouds)
    lists = predator_lists({SCENE: PAIRS}, matrix_of(gt / "gt.log", 4))
    (root / "3DMatch.pkl").write_bytes(pickle.dumps(lists))


def geotransformer(root, clouds, gt):
    """Fragments in data/test/, a pickled list of dicts and the logs in metadata/."""
    write_pth(root / "data" / "test" / SCENE, clouds)
    write_logs(root / "metadata" / "benchmarks" / "3DMatch" / SCENE, gt)
    lists = geotransformer_lists({SCENE: PAIRS}, matrix_of(gt / "gt.log", 4))
    (root / "metadata" / "3DMatch.pkl").write_bytes(pickle.dumps(lists))


@pytest.fixture(scope="module")
def measured(real_data, tmp_path_factory):
    """Evaluates a tree written by one of the above; the features of equal clouds are shared."""
    base = tmp_path_factory.mktemp("layouts")
    clouds = [real_data / "indoor/3dmatch/fragments" / SCENE / f"cloud_bin_{n}.ply" for n in range(3)]
    gt = real_data / "indoor/3dmatch/benchmarks/3DMatch" / SCENE

    def measure(layout):
        root = base / layout.__name__
        layout(root, clouds, gt)
        settings = ["protocol.voxel=0.05", "protocol.samples=[1000]", "seeds=[0]", "estimator=ransac"]
        places = [f"data.root={root}", f"out={root / 'out'}", f"cache={base / 'features'}"]
        figures = evaluate(compose_config("evaluate", ["data=3dmatch", *settings, *places]))
        return figures, len(list((base / "features").glob("*/*.npz"))), root / "out"

    return measure


def test_the_three_layouts_of_3dmatch_give_the_same_figures(measured):
    results = [measured(layout) for layout in (original, predator, geotransformer)]
    assert [files for _, files, _ in results] == [3, 3, 3]  # the same clouds to the last bit
    first = results[0][0]
    assert (first["pairs"], first["pairs_RR"]) == (2, 1)
    assert first["IR"] > 0.1
    for (figures, _, out), official in zip(results, (True, False, True), strict=True):
        assert ("RR" in figures) == official  # Predator's pickle has no information matrices
        for key in ("IR", "IR_one_way", "FMR", "RR_rmse"):
            assert figures[key] == first[key]
        for name in ("records.jsonl", "table.md", "table.tex", "report.html", "config.yaml"):
            assert (out / name).stat().st_size > 0


def test_a_kitti_tree_is_measured_without_its_broken_scan(real_data, tmp_path, capsys):
    runpy.run_path(str(real_data / "lidar/unpack.py"))["unpack"](tmp_path)
    (scan,) = tmp_path.rglob("sequences/90/velodyne/000102.bin")  # of the last of four pairs
    scan.write_bytes(scan.read_bytes()[: 4096 * 100])
    data = "data=kitti", "data.sequences=[90]", "data.skip_broken=true", "data.workers=1"
    settings = "seeds=[0]", "protocol.samples=[5000]", "protocol.mutual=true"
    places = f"data.root={tmp_path}", f"out={tmp_path / 'out'}", f"cache={tmp_path / 'features'}"
    figures = evaluate(compose_config("evaluate", [*data, *settings, *places]))
    assert figures["pairs"] == 3
    assert figures["RR_2m_5deg"] == 1.0
    shown = capsys.readouterr().out
    assert "1 pairs left out, first 90/000080->90/000102" in shown
    for words in ("RR 0.2 m / 1 deg %", "RR rmse %"):
        assert words in shown
