"""The files of maps: five scans in a row and one beside them, in two maps."""

import json

import numpy as np
import pytest
from PIL import Image

from pcreg.io.cloud import Cloud, read_cloud
from pcreg.mapping.map import Map, MapEdge
from pcreg.registration.clouds.prepared import PreparedCloud
from pcreg.viz.map_files import scan_colors, write_map

PLATE = np.random.default_rng(0).uniform(0, 1, (3000, 3)) * [1, 1, 0.1]


def scan_of(row: int) -> PreparedCloud:
    """A scan; scans of the first map have the place of their sensor."""
    return PreparedCloud(Cloud(PLATE), (0.5, 0.5, row) if row < 5 else "auto")


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("map")
    poses = np.tile(np.eye(4), (7, 1, 1))
    poses[:5, 0, 3] = np.arange(5)
    edges = [MapEdge(row + 1, row, True, 0.9, "fits", True, "", np.eye(4)) for row in (0, 1, 2, 3, 5)]
    edges.append(MapEdge(4, 0, True, 0.8, "fits", False, "contradicts <x>", np.eye(4)))
    edges.append(MapEdge(4, 1, False, 0.1, "does not", False, "not registered", None))
    names = tuple(f"<{row}>.ply" for row in range(7))
    found = Map(names, ("",) * 7, poses, np.array([1, 1, 1, 1, 1, 2, 2]), tuple(edges), 0.05)
    assert repr(found) == "<Map of 7 scans: 5 in map 1, 2 in map 2, 0 alone>"
    return folder, write_map(folder, found, scan_of)


def test_each_map_has_files_of_its_own(written):
    folder, paths = written
    own = ["poses.txt", "poses_kitti.txt", "map.ply", "overview.png", "viewer.html"]
    expected = {"graph.json", "map.npz", *own, *(f"map_2/{name}" for name in own)}
    assert {str(path.relative_to(folder)) for path in paths} == expected
    whole, other = (read_cloud(place / "map.ply").points for place in (folder, folder / "map_2"))
    assert np.ptp(whole, axis=0) == pytest.approx([5, 1, 0.1], abs=0.02)
    assert np.ptp(other, axis=0) == pytest.approx([1, 1, 0.1], abs=0.02)
    assert len(other) < len(PLATE)  # two scans of the same points


def test_a_map_of_scans_with_viewpoints_says_from_where_each_point_was_seen(written):
    seen, drawn = (read_cloud(written[0] / name) for name in ("map.npz", "map.ply"))
    np.testing.assert_allclose(seen.points, drawn.points, atol=1e-6)
    scan = np.round(seen.viewpoint[:, 2])  # row n stands at (n + 0.5, 0.5, n)
    np.testing.assert_allclose(
        seen.viewpoint, np.stack([scan + 0.5, 0 * scan + 0.5, scan], axis=1), atol=1e-6
    )
    assert set(scan.tolist()) == set(range(5))
    assert (np.abs(seen.points[:, 0] - scan - 0.5) <= 0.5 + 1e-6).all()


def test_files_of_a_run_before_are_removed(written, tmp_path):
    """Other files stay, and so do folders of similar names that are other runs or no maps."""
    earlier = "graph.json", "map_2/poses.txt", "map_3/viewer.html", "map_3/own.txt", "map.npz"
    other = "map_4/graph.json", "map_4/poses.txt", "none/map_2/poses.txt"
    (tmp_path / "none").mkdir()
    for name in (*earlier, *other):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    found = Map(("a", "b"), ("", ""), np.tile(np.eye(4), (2, 1, 1)), np.ones(2, dtype=int), (), 0.05)
    write_map(tmp_path, found, lambda row: scan_of(5 + row), picture=False)
    assert not (tmp_path / "map.npz").exists()
    assert not (tmp_path / "map_2").exists()
    assert [path.name for path in (tmp_path / "map_3").iterdir()] == ["own.txt"]
    found.save(tmp_path / "none")
    assert all((tmp_path / name).exists() for name in other)


def test_the_page_has_scans_to_switch_and_edges_to_see(written):
    page = (written[0] / "viewer.html").read_text()
    assert page.count('class="scan"') == 5
    assert "&lt;4&gt;.ply to &lt;0&gt;.ply<td>contradicts &lt;x&gt;" in page
    content = json.loads(page.split('id="content">')[1].split("</script>")[0])
    assert content["used"] == [[1, 0], [2, 1], [3, 2], [4, 3]]
    assert content["unused"] == [[4, 0]]
    assert len(content["clouds"]) == len(content["colors"]) == len(content["centres"]) == 5


def test_the_picture_shows_each_scan_in_its_colour(written):
    picture = np.asarray(Image.open(written[0] / "overview.png")).reshape(-1, 3).astype(int)
    for color in scan_colors(5).astype(int):
        assert (np.abs(picture - color).max(1) < 12).sum() > 1000
