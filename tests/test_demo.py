import json
import re

import numpy as np

from pcreg.cli import demo
from tests.processes import CHECKOUT

NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def test_the_demo_registers_and_the_readme_shows_what_it_prints(tmp_path, capsys):
    assert demo.main(["--out", str(tmp_path)]) == 0
    names = ["aligned.ply", "overview.png", "result.json", "source.ply", "target.ply"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    assert json.loads((tmp_path / "result.json").read_text())["registered"]
    printed = capsys.readouterr().out
    line = next(line for line in printed.splitlines() if line.startswith("true error"))
    degrees, centimetres = float(line.split()[3]), float(line.split()[6])
    assert degrees < 0.3
    assert centimetres < 2

    assert demo.main(["--out", str(tmp_path), "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")
    readme = (CHECKOUT / "README.md").read_text()
    shown = readme.partition("\nprints first\n\n")[2].partition("\n\nand writes")[0]
    shown = shown.replace("\n    ", "\n").strip()
    real = printed[printed.index("registered") : printed.index("]]") + 2]
    assert NUMBER.sub("#", shown) == NUMBER.sub("#", real)
    # Other processors round otherwise
    numbers = (np.array(NUMBER.findall(text), dtype=float) for text in (shown, real))
    np.testing.assert_allclose(*numbers, rtol=0.01, atol=0.01)
