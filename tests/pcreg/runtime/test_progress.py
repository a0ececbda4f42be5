import logging
import time
from functools import partial

import numpy as np
import pytest
from rich.console import Console

from pcreg import register
from pcreg.runtime.progress import Steps, progress
from tests.pcreg.scenes import wavy_sheet

log = logging.getLogger("pcreg.somewhere")


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr("pcreg.runtime.progress.DELAY_SECONDS", 0.05)


def test_on_a_terminal_it_is_one_line(impatient, capsys, monkeypatch):
    monkeypatch.setattr("rich.console.Console", partial(Console, force_terminal=True, width=80))
    with Steps("describe: a[1].ply"):
        time.sleep(0.4)
        print("kept apart")
    captured = capsys.readouterr()
    assert captured.out == "kept apart\n"
    assert "describe: a[1].ply after" in captured.err


def test_a_bar_ends_at_its_end_where_the_total_is_a_bound(capsys):
    assert list(progress(range(3), "register", 9)) == [0, 1, 2]
    assert "3/3" in capsys.readouterr().err


def test_what_is_done_soon_is_not_said(capsys):
    with Steps("reading"):
        log.info("at work")
    assert capsys.readouterr().err == ""
    assert logging.getLogger("pcreg").handlers == []
    assert logging.getLogger("pcreg").level == logging.NOTSET


def test_the_library_says_what_it_does_and_prints_nothing(capsys, caplog):
    points = wavy_sheet(3000)
    with caplog.at_level(logging.INFO, logger="pcreg"):
        said = register(points, points + 1.0, descriptor="fpfh", voxel=0.05)
    steps = {record.getMessage().split(":")[0] for record in caplog.records}
    assert steps == {"describe", "match", "estimate", "refine"}
    silent = register(points, points + 1.0, descriptor="fpfh", voxel=0.05)
    np.testing.assert_array_equal(said.T_target_source, silent.T_target_source)
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""
