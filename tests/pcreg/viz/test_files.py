"""The files of a registration; its page is tested in a real browser where one is installed."""

import json
import re
from types import SimpleNamespace

import numpy as np
import pytest

from pcreg.geometry.se3 import inverse, rotation_about, se3, transform
from pcreg.io.cloud import Cloud, read_cloud
from pcreg.registration.result import Registration
from pcreg.viz import files
from pcreg.viz.overview import MAX_DRAWN_POINTS, TARGET, byte
from tests.browser import seen_in_a_browser
from tests.pcreg.evidences import evidence
from tests.pcreg.scenes import wavy_sheet

FAR = se3(rotation_about((1, 2, 3), 40), np.array([0.3, -0.2, 5e5]))
T = se3(rotation_about(np.array([0.2, 0.1, 1.0]), 70), np.array([4.0, -2.0, 1.0]))


@pytest.mark.parametrize(("most", "step"), [(50, 1), (20, 3)])
def test_clouds_are_written_in_the_target_frame_and_of_a_huge_one_some(tmp_path, monkeypatch, most, step):
    monkeypatch.setattr(files, "MAX_ALIGNED_POINTS", most)
    rng = np.random.default_rng(0)
    source, target = rng.normal(size=(50, 3)), rng.normal(size=(20, 3))
    (tmp_path / "viewer.html").touch()  # of someone else: there is no earlier answer
    clouds, found = (Cloud(source), Cloud(target)), SimpleNamespace(T_target_source=FAR, verdict="right")
    files.write(tmp_path, clouds, found, {"source": "a", "target": "b"}, picture=False)
    assert (tmp_path / "viewer.html").is_file()
    points = read_cloud(tmp_path / "aligned.ply").points
    np.testing.assert_allclose(points, np.concatenate([transform(FAR, source[::step]), target]), atol=1e-9)
    colors = (tmp_path / "aligned.ply").read_bytes()[-27:][24:]
    assert tuple(colors) == byte(TARGET)


LOOK = """<script>addEventListener("load", () => {
  const canvas = document.querySelector("canvas");
  const ORANGE = [245, 146, 52], BLUE = [31, 126, 176], RED = [194, 24, 91];
  const count = colour => { // pixels of that hue, however dark
    const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
    let found = 0;
    for (let n = 0; n < data.length; n += 4) {
      const part = data[n] / colour[0];
      const same = [1, 2].every(k => Math.abs(data[n + k] - part * colour[k]) < 12);
      if (data[n + 3] && part > 0.2 && same) found++;
    }
    return found;
  };
  const look = () => { draw(); return {orange: count(ORANGE), blue: count(BLUE), red: count(RED)}; };
  const click = name => { document.getElementById(name).click(); return look(); };
  const seen = {first: look()};
  seen.without_source = click("source"); click("source");
  seen.without_target = click("target"); click("target");
  seen.matches = click("matches"); click("matches");
  seen.before = click("moved"); click("moved");
  click("residual"); seen.residual = {orange: count(ORANGE), dark: count([68, 1, 84])};
  click("residual");
  const still = canvas.toDataURL();
  const point = (kind, x, y) => canvas.dispatchEvent(
    new PointerEvent(kind, {pointerId: 7, clientX: x, clientY: y, bubbles: true}));
  point("pointerdown", 300, 300); point("pointermove", 380, 330); point("pointerup", 380, 330); draw();
  seen.turned = canvas.toDataURL() !== still;
  canvas.dispatchEvent(new MouseEvent("dblclick")); draw();
  seen.back = canvas.toDataURL() === still;
  canvas.dispatchEvent(new WheelEvent("wheel", {deltaY: 900})); draw();
  seen.small = look();
  seen.asked = performance.getEntriesByType("resource").filter(r => !r.name.startsWith("data:")).length;
  seen.title = document.querySelector("h1").textContent;
  document.body.innerHTML = "<p id=seen></p>";
  document.getElementById("seen").textContent = "SEEN" + JSON.stringify(seen) + "SEEN";
});</script>"""


def page(path, source, target):
    """The page of two clouds that T aligns, with a match at every fiftieth point."""
    rows = np.arange(0, len(source), 50)
    matches, points = np.stack([rows, rows], axis=1), np.stack([source, target], axis=1)[rows]
    found = Registration(T, True, 0.9, "", evidence(), 0.02, matches, points)
    files.viewer(source, target, found, path, title="a <b> & c", record={"reason": "fits <well>"})
    return path.read_text()


@pytest.fixture(scope="module")
def sheets():
    """The same sheet in two frames; half of the source floats 3.5 cm above the target."""
    target = wavy_sheet(20_000)
    lifted = target + np.where(target[:, :1] < 0.5, [0, 0, 0.035], [0, 0, 0.0])
    return transform(inverse(T), lifted), target


def test_it_asks_for_nothing_from_anywhere(sheets, tmp_path):
    text = page(tmp_path / "a.html", *sheets)
    assert not re.search(r"""(src|href)=["'](?!data:)|@import|url\(|https?:""", text)
    assert "a &lt;b&gt; &amp; c" in text
    assert "fits &lt;well&gt;" in text
    assert "{{" not in text
    content = json.loads(re.search(r'id="content">(.*)</script>', text)[1])
    assert len(content["before"]) == len(content["after"]) == 16


def test_millions_of_points_make_a_page_below_ten_megabytes(tmp_path):
    source, target = np.random.default_rng(0).uniform(-50, 50, (2, 5 * MAX_DRAWN_POINTS, 3))
    page(tmp_path / "a.html", source, target)
    assert (tmp_path / "a.html").stat().st_size < 10e6


def test_a_browser_shows_it_and_does_what_it_is_told(sheets, tmp_path):
    page(tmp_path / "a.html", *sheets)
    seen = seen_in_a_browser(tmp_path / "a.html", LOOK, "900,700")
    first = seen["first"]
    assert first["orange"] > 1000
    assert first["blue"] > 1000
    assert first["red"] == 0
    assert seen["without_source"]["orange"] == 0
    assert seen["without_source"]["blue"] > first["blue"]
    assert seen["without_target"]["blue"] == 0
    assert seen["matches"]["red"] > 0
    assert seen["before"]["orange"] != first["orange"]
    assert seen["residual"]["orange"] == 0
    assert seen["residual"]["dark"] > 500  # no distance
    assert seen["turned"]
    assert seen["back"]
    assert seen["small"]["blue"] < first["blue"] / 2
    assert seen["asked"] == 0
    assert seen["title"] == "a <b> & c"
