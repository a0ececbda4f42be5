"""Scans in wrong places, and maps that belong together, with given answers."""

import numpy as np
import pytest

from pcreg.geometry.se3 import inverse, rotation_about, se3, transform, translation_error
from pcreg.mapping import consolidation
from pcreg.mapping.consolidation import CONTRADICTED, OUTWEIGHED, SEVERED, Consolidation
from tests.pcreg.mapping.edges import COVARIANCE, edge, growing_map, measured, scan
from tests.pcreg.registration.test_icp import corner

N = 7
PAIRS = ((4, 3), (5, 2))  # between the two maps
TURNED = se3(rotation_about(np.array([0, 0, 1.0]), 180), np.array([1.0, 0, 0]))


@pytest.fixture
def poses():
    """Poses of scans in a row, at steps of 30 cm."""
    return np.array([se3(np.eye(3), np.array([0.3 * row, 0, 0])) for row in range(N)])


@pytest.fixture
def growing(poses, tmp_path):
    """Scans 0 to 3 and 4 to 6 in a map each."""
    scans = [scan(transform(inverse(pose), corner(3000, seed))) for seed, pose in enumerate(poses)]
    made = growing_map(tmp_path, dict(zip("abcdefg", scans, strict=True)))
    pairs = [(1, 0), (2, 0), (2, 1), (3, 0), (3, 1), (3, 2), (5, 4), (6, 4), (6, 5)]
    add(made, *(measured(poses, *pair, confidence=0.995) for pair in pairs))
    made.solve()
    assert made.graph.component.tolist() == [0, 0, 0, 0, 1, 1, 1]
    return made


def add(growing, *edges):
    for each in edges:
        growing.edges[each.source, each.target] = each
        growing.answers[each.source, each.target] = {
            "registered": each.confidence >= 0.7,
            "confidence": each.confidence,
            "T_target_source": each.T_target_source.tolist(),
        }


def refused(T):
    """The answer on record for a pair that is not registered."""
    return {"registered": False, "confidence": 0.4, "T_target_source": T.tolist()}


def agree(growing, count):
    """Record that `count` matches of scans 3 and 4 agreed at screening."""
    growing.inliers[4, 3] = growing.inliers[3, 4] = count


def oracle(poses, confidence=0.9, *, credulous=False):
    """Answers by the true poses; a search finds a wrong motion, too. A credulous one confirms any motion."""

    def answered(work, paths, voxel, question):
        true = inverse(poses[question.target.rows[0]]) @ poses[question.source.rows[0]]
        if (T := question.T_target_source) is None:
            return [(true, 0.3), (TURNED @ true, 0.2)]
        right = credulous or translation_error(T, true) < 0.1
        ends = question.source.rows[0], question.target.rows[0]
        likely = confidence if min(ends) < 4 <= max(ends) else 0.9  # less between the two maps
        found = {"T_target_source": T, "confidence": likely if right else 0.05}
        return found | {"reason": "because", "covariance": COVARIANCE}

    return answered


def test_of_two_places_between_parts_the_likelier_counts(growing, poses, monkeypatch):
    """Two edges that agree outweigh a single edge of higher confidence."""
    monkeypatch.setattr(consolidation, "answered", oracle(poses, 0.8))
    add(growing, *(measured(poses, *pair, confidence=0.9) for pair in PAIRS))
    add(growing, edge(0, 5, TURNED, confidence=0.98))
    assert Consolidation(growing).cut()
    assert growing.refuted == {(0, 5): OUTWEIGHED}
    assert not growing.graph.component.any()


def test_three_refusals_between_two_maps_are_enough_among_many_scans(growing, monkeypatch):
    growing.inliers = dict.fromkeys([(4, 3), (3, 4), (5, 0), (0, 5)], 60)
    refused = [edge(6, other, TURNED, confidence=0.1) for other in range(3)]
    add(growing, *refused)
    for each in refused:
        del growing.edges[each.source, each.target]
    assert len(growing._proposed(9)) == 2
    monkeypatch.setattr("pcreg.mapping.growing_map.FEW_SCANS", 6)
    assert not growing._proposed(9)


@pytest.mark.parametrize("others", [[5], [1, 2, 3]])
def test_a_scan_that_does_not_belong_there_is_dropped(growing, poses, monkeypatch, others):
    """The scan has one wrong edge, or three wrong ones that agree with one another."""
    asked = []
    answers = oracle(poses)
    monkeypatch.setattr(consolidation, "answered", lambda *each: asked.append(each[3]) or answers(*each))
    for pair in ((6, 4), (6, 5)):
        del growing.edges[pair], growing.answers[pair]
    wrong = [(6, other) for other in others]
    add(growing, *(edge(a, b, inverse(poses[b]) @ TURNED @ poses[a], confidence=0.99) for a, b in wrong))
    growing.solve()
    assert growing.graph.component[6] == growing.graph.component[others[0]]
    Consolidation(growing).run()
    assert (growing.graph.component[:6] != growing.graph.component[6]).all()
    assert growing.refuted == dict.fromkeys(wrong, f"{SEVERED}: because")
    assert len(asked) == len(growing.records.by_pair)  # nothing is asked twice


@pytest.mark.parametrize("right", [True, False])
def test_edges_between_two_parts_of_a_map_are_verified_by_submaps(growing, poses, monkeypatch, right):
    """Two edges of lower confidence agree with each other, as edges between similar places do."""
    monkeypatch.setattr(consolidation, "answered", oracle(poses))
    place = np.eye(4) if right else TURNED
    add(growing, *(edge(a, b, inverse(poses[b]) @ place @ poses[a], confidence=0.95) for a, b in PAIRS))
    growing.solve()
    assert growing.graph.component.tolist() == [0] * N
    Consolidation(growing).run()
    assert growing.graph.component.tolist() == [0, 0, 0, 0, *[0 if right else 1] * 3]
    assert growing.refuted == ({} if right else dict.fromkeys(PAIRS, f"{SEVERED}: because"))


@pytest.mark.parametrize(
    ("own", "answer", "kept"), [(0.98, 0.4, True), (0.98, 0.3, False), (0.75, 0.5, False)]
)
def test_an_edge_and_a_submap_decide_together(growing, poses, monkeypatch, own, answer, kept):
    monkeypatch.setattr(consolidation, "answered", oracle(poses, answer))
    add(growing, measured(poses, 4, 3, confidence=own))
    assert Consolidation(growing).cut() != kept
    assert growing.graph.component.tolist() == [0, 0, 0, 0, *[0 if kept else 1] * 3]


def test_a_part_is_verified_with_what_was_confirmed_before(growing, poses, monkeypatch):
    """Scan 6 alone is too little evidence of its place beside 2 and 3; with scans 4 and 5 it suffices."""

    def answered(work, paths, voxel, question):
        rows = {*question.source.rows, *question.target.rows}
        alone = 6 in rows and not rows & {4, 5}
        found = {"T_target_source": question.T_target_source, "confidence": 0.3 if alone else 0.9}
        return found | {"reason": "because", "covariance": COVARIANCE}

    monkeypatch.setattr(consolidation, "answered", answered)
    pairs = [(6, 2), (6, 3), (6, 4), (6, 5)]
    add(growing, *(measured(poses, *pair, confidence=0.98) for pair in pairs))
    growing.solve()
    Consolidation(growing).cut()
    assert growing.graph.component.tolist() == [0] * N
    assert not growing.refuted


def test_maps_are_joined_where_a_scan_lies_on_what_is_around_another(growing, poses, monkeypatch):
    """A refused pair and a doubtful one have the right motion, one with more confidence a wrong one."""
    monkeypatch.setattr(consolidation, "answered", oracle(poses))
    wrong = edge(5, 2, inverse(poses[2]) @ TURNED @ poses[5], confidence=0.9)
    add(growing, wrong, measured(poses, 4, 2, confidence=0.75))
    growing.answers[4, 3] = refused(inverse(poses[3]) @ poses[4])
    agree(growing, 5)
    growing.solve()
    Consolidation(growing).run()
    assert growing.graph.component.tolist() == [0] * N
    assert growing.contradicted == {(5, 2): CONTRADICTED}
    (joint,) = [each for each in growing.edges.values() if each.verified]
    assert joint.source in (4, 5, 6)
    assert joint.target in (0, 1, 2, 3)
    assert growing.answers[joint.source, joint.target]["registered"]
    for found, true in zip(growing.graph.poses, poses, strict=True):
        assert translation_error(found, inverse(poses[0]) @ true) < 0.05


@pytest.mark.parametrize(("confidence", "joined"), [(0.85, True), (0.6, False)])
def test_a_place_that_is_searched_has_to_be_verified(growing, poses, monkeypatch, confidence, joined):
    monkeypatch.setattr(consolidation, "answered", oracle(poses, confidence))
    agree(growing, 20)
    Consolidation(growing).run()
    assert growing.graph.component.tolist() == [0, 0, 0, 0, *[0 if joined else 1] * 3]
    if not joined:  # its best place is on record
        (best,) = [each for each in growing.answers.values() if "scans around" in each.get("reason", "")]
        assert best["confidence"] == confidence
        assert not best["registered"]


def test_of_two_places_that_are_confirmed_none_is_taken(growing, poses, monkeypatch):
    monkeypatch.setattr(consolidation, "answered", oracle(poses, credulous=True))
    for pair, T in (((4, 3), poses[4]), ((5, 2), TURNED @ poses[5])):
        growing.answers[pair] = refused(inverse(poses[pair[1]]) @ T)
    agree(growing, 5)
    Consolidation(growing).run()
    assert growing.graph.component.tolist() == [0, 0, 0, 0, 1, 1, 1]
