"""Figures, tables and captions of records written by hand, whose averages are known."""

from dataclasses import replace

import numpy as np
import pytest

from pcreg.evaluation import metrics
from pcreg.evaluation.protocol import Protocol, Setup, caption
from pcreg.evaluation.runner import INDOOR_GATES, OUTDOOR_GATES
from pcreg.evaluation.tables import Table, cell, curve, heading, per_scene, published, tables
from pcreg.runtime.errors import InputError

PROTOCOL = Protocol(name="toy", voxel=0.1, gates=((2.0, 5.0), (0.2, 1.0)))
SETUP = Setup("rooms", PROTOCOL, "fpfh", "", "open3d", (0,), {"open3d": "0.20.0"})
A = Protocol(name="PROTO-A", voxel=0.025, samples=(5000, 2500), recall="information", tau1=0.1)


def record(scene, consecutive=False, samples=(None,), seeds=(0,), **trial):
    errors = {"IR": 0.5, "RTE": 0.1, "RRE": 0.1, "rmse": 0.1, "information_rmse": 0.1} | trial
    errors["IR_one_way"] = errors["IR"] / 2
    errors["seconds"] = {"match": 1.0, "estimate": 2.0}
    trials = [errors | {"samples": n, "seed": seed} for seed in seeds for n in samples]
    return {"scene": scene, "consecutive": consecutive, "describe_seconds": 3.0, "trials": trials}


def by_hand(samples=(None,)):
    return [
        record("a", samples=samples, IR=0.08, RTE=1.0, RRE=6.0, rmse=0.2, information_rmse=0.2),
        record("a", samples=samples, IR=0.05, RTE=3.0, RRE=1.0, rmse=None, information_rmse=None),
        record("a", consecutive=True, samples=samples, IR=0.2, RRE=0.2, information_rmse=0.9),
        record("b", samples=samples, IR=0.2),
    ]


def test_figures_of_records_written_by_hand():
    rows = metrics.rows(by_hand(), None, 0)
    a = metrics.by_scene(rows, PROTOCOL)["a"]
    assert (a["pairs"], a["pairs_RR"]) == (3, 2)
    assert a["RR"] == 0.5  # 0.2 m is still a success, not found is not, the neighbour does not count
    assert (a["FMR"], a["FMR_one_way"]) == pytest.approx((2 / 3, 1 / 3))
    assert a["IR"] == pytest.approx(0.11)
    assert a["RR_rmse"] == pytest.approx(2 / 3)
    assert a["RR_2m_5deg"] == pytest.approx(1 / 3)
    assert (a["RTE_joint_mean"], a["RRE_joint_mean"]) == pytest.approx((0.1, 0.2))
    assert (a["RTE_separate_mean"], a["RRE_separate_mean"]) == pytest.approx((0.55, 0.6))
    assert (a["RTE_all_mean"], a["RTE_all_median"]) == pytest.approx((4.1 / 3, 1.0))
    assert a["RRE_separate_std"] == pytest.approx(0.4)
    assert (a["seconds_describe"], a["seconds_match"], a["seconds_estimate"]) == (3.0, 1.0, 2.0)
    assert metrics.over_scenes(rows, PROTOCOL)["RR"] == pytest.approx((0.5 + 1) / 2)
    assert metrics.figures(rows, PROTOCOL)["RR"] == pytest.approx(2 / 3)
    assert metrics.overall(rows, PROTOCOL) == metrics.over_scenes(rows, PROTOCOL)
    assert metrics.overall(rows, replace(PROTOCOL, scene_mean=False))["RR"] == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("recall", "expected"), [("gate", [0, 0, 1, 1]), ("rmse", [1, 0, 1, 1]), ("information", [1, 0, 0, 1])]
)
def test_a_pair_succeeds_by_the_criterion_of_the_protocol(recall, expected):
    rows = metrics.rows(by_hand(), None, 0)
    np.testing.assert_array_equal(metrics.succeeded(rows, replace(PROTOCOL, recall=recall)), expected)


def test_mean_and_spread_over_seeds():
    one, two, three = ({"IR": value, "pairs": 4} for value in (0.2, 0.3, 0.4))
    means, spread = metrics.over_seeds([one, two, three])
    assert (means["IR"], spread["IR"], spread["pairs"]) == pytest.approx((0.3, 0.1, 0.0))
    assert cell("IR", means, spread) == "30.0 ± 10.0"
    assert cell("IR", *metrics.over_seeds([one])) == "20.0"


def test_a_table_per_figure_beside_published_ones_in_the_same_columns():
    setup = replace(SETUP, benchmark="3DMatch", protocol=A)
    first, *others = tables(by_hand(A.samples), setup)
    assert first.title == "3DMatch: RR %"
    assert first.header == ["N points", "5000", "2500"]
    assert first.rows == [
        ["fpfh + open3d, mean of scenes", "75.0", "75.0"],
        ["fpfh + open3d, all pairs pooled", "66.7", "66.7"],
        ["FCGF [1]", "85.1", "84.7"],
        ["Predator [1]", "89.0", "89.9"],
    ]
    assert "Table 2" in first.notes[0]
    assert len(first.notes) == 1
    changed, *_ = tables(by_hand(A.samples), replace(setup, protocol=replace(A, tau1=0.2)))
    assert changed.notes[1:] == ["Published figures are not comparable: tau1 is 0.1 there and 0.2 here."]
    alone, *_ = tables(by_hand(), replace(setup, protocol=replace(A, samples=(None,))))
    assert [len(alone.rows), alone.notes] == [2, []]  # nothing is published of all points
    assert {table.title.partition(": ")[2] for table in others} >= {"RR rmse %", "FMR %", "IR %", "s match"}


def test_every_scene_has_a_row_and_the_mean_counts_none_twice():
    table = per_scene(by_hand(A.samples), replace(SETUP, protocol=A), 2500)
    assert table.title == "rooms by scene, 2500 points"
    column = table.header.index("RR %")
    assert [(row[0], row[column]) for row in table.rows] == [
        ("a", "50.0"),
        ("b", "100.0"),
        ("mean of scenes", "75.0"),
        ("std over scenes", "25.0"),
    ]
    assert [row[table.header.index("pairs")] for row in table.rows] == ["3", "1", "", ""]


def test_markdown_and_latex():
    table = Table("Recall & more", ["", "RR %"], [["a_b", "85.1 ± 0.4"]], ["[1] a source"])
    assert table.markdown().splitlines() == [
        "**Recall & more**",
        "",
        "|     |       RR % |",
        "|:----|-----------:|",
        "| a_b | 85.1 ± 0.4 |",
        "",
        "[1] a source",
    ]
    latex = table.latex("50 % of it {^2} $.")
    assert r"\caption{Recall \& more. 50 \% of it \{\textasciicircum{}2\} \$. [1] a source}" in latex
    assert r"a\_b & 85.1 $\pm$ 0.4 \\" in latex
    assert latex.count(r"\begin") == latex.count(r"\end") == 2


def test_the_caption_names_all_that_changes_a_figure():
    protocol = replace(A, tau2=0.06, distance=0.04, iterations=1234, edge_length=None, note="Mind the gap.")
    setup = replace(
        SETUP, protocol=protocol, fingerprint="abc123", seeds=(3, 4), left_out=("08/000001.bin is missing",)
    )
    words = caption(by_hand(A.samples), setup)
    for expected in (
        "4 pairs of 2 scenes; descriptor fpfh (weights abc123); estimator open3d; protocol PROTO-A: ",
        "voxel=0.025, samples=[5000, 2500], draw=points, mutual=true, fit=drawn, tau1=0.1, tau2=0.06",
        "distance=0.04, iterations=1234, confidence=0.999, n=3, edge_length=null",
        "recall=information",
        "seeds [3, 4], ± sample standard deviation; open3d 0.20.0; ",
        "1 pairs left out, first 08/000001.bin is missing. Mind the gap.",
    ):
        assert expected in words


def test_without_information_matrices_the_official_recall_is_left_out():
    records = by_hand()
    for each in records:
        del each["trials"][0]["information_rmse"]
    assert "RR" not in metrics.figures(metrics.rows(records, None, 0), PROTOCOL)


def test_published_figures_are_fractions_with_known_keys():
    gates = (*PROTOCOL.gates, *INDOOR_GATES, *OUTDOOR_GATES)
    known = metrics.figures(metrics.rows(by_hand(), None, 0), replace(PROTOCOL, gates=gates)).keys()
    for table in published().values():
        assert table.get("settings", {}).keys() <= vars(PROTOCOL).keys()
        for method in table["methods"]:
            assert method["figures"].keys() <= known
            for key, value in method["figures"].items():
                assert all(0 < each < 1 for each in curve(key, value).values())
                assert heading(key)


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"samples": [2]}, "samples=2"),
        ({"samples": [10, 10]}, "number once"),
        ({"draw": "matches", "mutual": False}, "mutual"),
        ({"fit": "all"}, "fit"),
        ({"gates": ()}, "gates"),
    ],
)
def test_an_impossible_protocol_is_refused(wrong, named):
    with pytest.raises(InputError, match=named):
        replace(PROTOCOL, **wrong)
