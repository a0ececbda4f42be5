"""`register` as tests call it."""

from pcreg.cli.register import main

FAST = ["--voxel", "0.15"]


def refusal(capsys, *arguments) -> str:
    """The one sentence of a refused command."""
    status = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    assert status == 2
    assert captured.err.startswith("error: ")
    assert captured.err.count("\n") == 1
    return captured.err
