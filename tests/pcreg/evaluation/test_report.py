"""The report, opened in a real browser where one is installed."""

import io
import re

import numpy as np
import pytest
from PIL import Image

from pcreg.evaluation.protocol import Setup
from pcreg.evaluation.report import failures, recall_curve, report, success_by_overlap
from tests.browser import seen_in_a_browser
from tests.pcreg.evaluation.toys import PROTOCOL, Rooms, run

SETUP = Setup("rooms <3", PROTOCOL, "distances", "", "ransac", (0, 1), {"numpy": "2"})

LOOK = """<script>addEventListener("load", () => {
  const images = [...document.images];
  const size = document.documentElement;
  document.body.innerHTML += "<p id=seen></p>";
  document.getElementById("seen").textContent = "SEEN" + JSON.stringify({
    images: images.length,
    broken: images.filter(i => !(i.complete && i.naturalWidth > 0)).length,
    tables: document.querySelectorAll("table").length,
    pairs: document.querySelectorAll(".pairs figure").length,
    asked: performance.getEntriesByType("resource").filter(r => !r.name.startsWith("data:")).length,
    overflow: size.scrollWidth - size.clientWidth,
  }) + "SEEN";
});</script>"""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The report of six pairs, one of which has no estimate."""
    folder, dataset = tmp_path_factory.mktemp("report"), Rooms()
    records = run(folder, dataset)
    lost = ("RTE", "RRE", "rmse", "information_rmse", "T_target_source")
    for trial in records[3]["trials"]:
        trial.update(dict.fromkeys(lost))
    report(records, SETUP, dataset, folder / "report.html")
    return folder / "report.html", records


def test_it_asks_for_nothing_from_anywhere(page):
    text = page[0].read_text()
    assert not re.search(r"""(src|href)=["'](?!data:)|@import|url\(""", text)
    for words in ("rooms &lt;3", "Recall against thresholds", "Success against overlap", "By scene"):
        assert words in text
    # two charts; of six pairs both views but for the estimate that is missing
    assert [text.count(f"<{tag}") for tag in ("img ", "table", "figure>")] == [13, 18, 6]


def test_the_worst_pairs_come_first(page):
    first, *others = failures(page[1], SETUP, Rooms(), count=4)
    assert (first["row"]["pair"], first["estimated"]) == (page[1][3]["pair"], None)
    errors = [wrong["row"]["rmse"] for wrong in others]
    assert errors == sorted(errors, reverse=True)
    assert all(wrong["estimated"][:2] == wrong["true"][:2] == b"\xff\xd8" for wrong in others)  # JPEG


@pytest.mark.parametrize("width", [1280, 500])
def test_a_browser_shows_all_of_it(page, width):
    seen = seen_in_a_browser(page[0], LOOK, f"{width},1000")
    assert seen == {"images": 13, "broken": 0, "tables": 18, "pairs": 6, "asked": 0, "overflow": 0}


@pytest.mark.parametrize("points", [0, 1, 2])
def test_a_cloud_of_hardly_a_point_is_shown(page, points):
    dataset = Rooms()
    dataset.rooms = {name: room[:points] for name, room in dataset.rooms.items()}
    assert len(failures(page[1], SETUP, dataset, count=1)) == 1


def test_clouds_in_map_coordinates_are_drawn_as_sharply(page):
    records, far = [page[1][0] | {"truth": np.eye(4).tolist()}], Rooms()
    far.cloud = lambda name: Rooms().cloud(name) + 5e6
    drawn = [failures(records, SETUP, dataset, count=1)[0]["true"] for dataset in (Rooms(), far)]
    one, other = (np.asarray(Image.open(io.BytesIO(jpeg))).astype(float) for jpeg in drawn)
    assert np.abs(one - other).mean() < 1


def test_recall_curve():
    found = recall_curve(np.array([0.1, 0.2, np.nan, 3.0]), np.array([0.1, 0.15, 5.0]))
    assert found.tolist() == [0, 0.25, 0.75]


def test_success_by_overlap():
    rate, pairs = success_by_overlap(np.array([0.05, 0.31, 0.39, 1.0]), np.array([0, 1, 0, 1]))
    assert pairs.tolist() == [1, 0, 0, 2, 0, 0, 0, 0, 0, 1]
    assert (rate[0], rate[3], rate[9]) == (0.0, 0.5, 1.0)
    assert np.isnan(rate[1])
