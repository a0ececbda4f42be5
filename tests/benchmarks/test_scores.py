"""Scores of answers that are right or wrong by construction."""

import numpy as np
import pytest

from benchmarks.scores import Answer, Gates, record, rows
from pcreg.geometry.se3 import rotation_about, se3
from pcreg.io.pairs import Pair

PAIR = Pair("b", "a", np.eye(4), overlap=0.5)
GATES = Gates(loose=(0.3, 15), strict=(0.1, 5))
CLOSE = se3(rotation_about([0, 0, 1], 1.0), np.array([0.05, 0, 0]))
ROUGH = se3(rotation_about([0, 0, 1], 7.0), np.array([0.05, 0, 0]))
FAR = se3(np.eye(3), np.array([3.0, 0, 0]))


def test_rows():
    judged = [(CLOSE, True), (ROUGH, False), (FAR, True), (FAR, False), (None, False)]
    records = [record(PAIR, Answer("judge", *each), seconds) for seconds, each in enumerate(judged, start=1)]
    records += [record(PAIR, Answer("mute", FAR), 1.0), record(PAIR, Answer("mute", None), 3.0)]
    judge, mute = rows(records, GATES)
    assert judge == {
        "pairs": 5,
        "loose": 2,
        "strict": 1,
        "wrong accepted": 1,
        "right refused": 1,
        "s": 3.0,
        "s 90 %": pytest.approx(4.6),
        "RTE m": pytest.approx(0.05),
        "RRE deg": pytest.approx(4.0),
        "method": "judge",
    }
    assert (mute["loose"], mute["wrong accepted"], mute["right refused"]) == (0, None, None)
    assert (mute["s"], mute["RTE m"], mute["RRE deg"]) == (2.0, None, None)


def test_gates_in_words():
    assert str(GATES) == "loose 0.3 m / 15 deg, strict 0.1 m / 5 deg"
