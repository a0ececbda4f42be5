"""Odd command lines and settings: an exit status that is documented, one sentence, no half-written file."""

import contextlib
import io
import json
import random
from pathlib import Path

import numpy as np

from pcreg.cli import register
from pcreg.cli.config import compose_config, flat
from pcreg.runtime.errors import InputError
from tests.pcreg.scenes import wavy_sheet

VALUES = ["0", "1", "-1", "2.5", "nan", "inf", "1e400", "abc", "", "null", "true", "[1]", "[]", "{a: 1}"]
VALUES += ["${limit}", "${nothing}", "'", "[1", "a=b", "~", "???", "caf\xe9", "a b", "\udce9", "9" * 30]
OPTIONS = {  # with values that are sound
    "--voxel": ["0.1", "0.2"],
    "--seed": ["3"],
    "--descriptor": ["fpfh", "fpfh", "fpfh", "orb"],
    "--device": ["cpu"],
    "--weights": ["missing.safetensors"],
    "--batch": ["{folder}/*.npy", "{folder}/pairs.csv", "{folder}/a.npy"],
    "--units": ["m", "mm", "mile"],
    "--out": ["{folder}/out", "{folder}/a.npy", "/proc/nope"],
}
FLAGS = ["--html", "--no-picture", "--traceback", "--version", "--help", "--", "--nonsense"]
FLAGS += ["--quiet", "--verbose", "--json"]
FILES = ["{folder}/a.npy", "{folder}/b.npy", "{folder}/missing.ply", "{folder}", "", "{folder}/pairs.csv"]


def trial(rng: random.Random, folder: Path) -> str:
    return _register(rng, folder) if rng.random() < 0.4 else _settings(rng)


def _register(rng: random.Random, folder: Path) -> str:
    for number, name in enumerate(("a", "b")):
        np.save(folder / f"{name}.npy", wavy_sheet(800 + number, extent=2.0))
    (folder / "pairs.csv").write_text("a.npy,b.npy\n")
    words = rng.choices(FILES[:2], k=2) if rng.random() < 0.8 else rng.choices(FILES, k=rng.randrange(4))
    for option in rng.sample(sorted(OPTIONS), rng.randrange(4)):
        usual = option == "--out" or rng.random() < 0.7
        words += [option, *rng.choice(OPTIONS[option] if usual else VALUES[:12]).split()]
    if rng.random() < 0.3:
        words += [rng.choice(FLAGS)]
    # What the command does without these takes longer; a later one counts.
    words = ["--descriptor", "fpfh", "--voxel", "0.1", "--out", "{folder}/out", *words]
    if "--batch" in words:  # is tried by interruptions: its processes take seconds to start
        words += ["--device", "cuda"]
    words = [word.replace("{folder}", str(folder)) for word in words]
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        try:
            status = register.main(words)
        except SystemExit as ended:  # argparse
            return {0: "answered", 2: "refused"}[ended.code]
    said, complaint = out.getvalue(), err.getvalue()
    assert not [path.name for path in folder.rglob(".*")], words
    result = folder / "out" / "result.json"
    if status == 2:
        *before, sentence = complaint.splitlines()
        assert sentence.startswith("error: "), words
        assert not before or {"--json", "--verbose"} & set(words), words
        assert not result.exists(), words
        return "refused"
    assert status in (0, 1), (words, status, complaint)
    assert json.loads(result.read_text())["registered"] is (status == 0), words
    if "--json" in words:
        assert json.loads(said) == json.loads(result.read_text()), words
    else:
        assert ("T_target_source" in said) != ("--quiet" in words), words
        assert not complaint or "--verbose" in words, (words, complaint)
    return "answered"


def _settings(rng: random.Random) -> str:
    name = rng.choice(["evaluate", "train"])
    overrides = ["data.root=x", *(["experiment=folder"] if name == "train" else [])]
    keys = [key for key in flat(compose_config(name, overrides)) if "_target_" not in key]
    for _ in range(rng.randrange(4)):
        key = rng.choice(keys)
        if rng.random() < 0.2:
            at = rng.randrange(len(key))
            key = key[:at] + rng.choice("abc.@/ ") + key[at + 1 :]
        overrides.append(f"{rng.choice(['', '', '', '+', '++', '~'])}{key}={rng.choice(VALUES)}")
    refusal = ""
    try:
        compose_config(name, overrides)
    except InputError as error:
        refusal = str(error)
    except Exception as error:
        raise AssertionError(f"{name} {overrides}") from error
    assert "\n" not in refusal, overrides
    return "refused" if refusal else "answered"
