import json

from pcreg.cli import demo


def test_the_demo_registers_and_leaves_what_it_promises(tmp_path, capsys):
    assert demo.main(["--out", str(tmp_path)]) == 0
    names = ["aligned.ply", "overview.png", "result.json", "source.ply", "target.ply"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    assert json.loads((tmp_path / "result.json").read_text())["registered"]
    printed = capsys.readouterr().out
    assert "T_target_source" in printed
    assert "FCGF (learned, weights" in printed
    line = next(line for line in printed.splitlines() if line.startswith("true error"))
    degrees, centimetres = float(line.split()[3]), float(line.split()[6])
    assert degrees < 0.3
    assert centimetres < 2
