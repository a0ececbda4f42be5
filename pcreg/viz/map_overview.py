"""The picture of a map: from above and from the side, each scan in its colour."""

from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from pcreg.geometry.se3 import transform
from pcreg.geometry.subsample import every_nth
from pcreg.runtime.files import replacing
from pcreg.viz.overview import byte, font, principal_axes
from pcreg.viz.render import BACKGROUND, from_above, from_the_side, render

SIZE = (900, 800)  # pixels of a view
MAX_DRAWN_POINTS = 1_500_000  # of all scans


def map_overview(scans: list[np.ndarray], colors: np.ndarray, path: str | Path, *, title: str) -> None:
    """Write a picture of scans (N, 3) in the frame of their map, with colours (n, 3) uint8, atomically."""
    each = MAX_DRAWN_POINTS // len(scans)
    drawn = [every_nth(scan, each) for scan in scans]
    view = principal_axes(np.concatenate(drawn))
    drawn = [transform(view, scan).astype(np.float32) for scan in drawn]
    page = Image.new("RGB", (2 * SIZE[0] + 30, SIZE[1] + 60), byte(BACKGROUND))
    ImageDraw.Draw(page).text((page.width // 2, 28), title, (0, 0, 0), font(22), anchor="mm")
    for column, camera in enumerate((from_above(), from_the_side())):
        image = render(drawn, list(colors / 255), camera, size=SIZE, splat=3)
        panel = Image.fromarray(np.rint(255 * image).astype(np.uint8))
        page.paste(panel, (10 + (SIZE[0] + 10) * column, 50))
    with replacing(path) as temporary:
        page.save(temporary, compress_level=2)
