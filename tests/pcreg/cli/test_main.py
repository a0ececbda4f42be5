"""`pcreg` and its verbs."""

import re
from importlib import metadata

import pytest

from pcreg.cli.main import VERBS, main


def test_help_lists_the_verbs(capsys):
    assert main(["--help"]) == 0
    listed = re.findall(r"^  (\w+) +\w", capsys.readouterr().out, re.MULTILINE)
    verbs = ["demo", "register", "verify", "map", "locate", "warmup", "evaluate", "train", "publish"]
    assert listed == list(VERBS) == verbs


def test_version(monkeypatch, capsys):
    installed = metadata.version("pcreg")
    monkeypatch.setattr(metadata, "version", None)  # a checkout that is not installed has it, too
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"pcreg {installed}\n"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["regster", "a.ply"], "regster is not a verb of pcreg; did you mean register?"),
        (["--quiet"], f"--quiet is not a verb of pcreg; use one of {', '.join(VERBS)}"),
        ([], f"a verb is needed, one of {', '.join(VERBS)}; pcreg --help explains them"),
    ],
)
def test_what_is_no_verb_is_refused_in_one_sentence(arguments, sentence, capsys):
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == f"error: {sentence}\n"


def test_a_working_folder_that_was_removed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    tmp_path.rmdir()
    assert main(["map", "a.ply", "b.ply"]) == 2
    assert capsys.readouterr().err == "error: the working folder was removed; change to another\n"


@pytest.mark.parametrize("verb", VERBS)
def test_help_of_a_verb_names_the_command_that_was_typed(verb, capsys):
    try:
        status = main([verb, "--help"])
    except SystemExit as stop:
        status = stop.code
    captured = capsys.readouterr()
    assert (status or 0, captured.err) == (0, "")
    assert captured.out.startswith(f"usage: pcreg {verb} [")
