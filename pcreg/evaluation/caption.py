"""What was measured and how, in words: everything that changes a figure of a benchmark."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pcreg.evaluation.protocol import Protocol, Scoring


@dataclass(frozen=True)
class Setup:
    """A run of a benchmark, for those who read its records."""

    benchmark: str
    protocol: Scoring
    descriptor: str
    fingerprint: str  # of the weights; "" if nothing is learned
    estimator: str
    estimation: str  # in words, see Estimator.label
    seeds: tuple[int, ...]
    versions: dict[str, str]
    alterations: tuple[str, ...] = ()  # of the benchmark's clouds, a sentence each
    matcher: str = ""  # fingerprint of the weights of a matcher that looks at both clouds; "": nearest
    left_out: tuple[str, ...] = ()  # pairs that the benchmark has and this run has not, with the reason

    @property
    def title(self) -> str:
        return f"{self.benchmark}, {self.protocol.name}: {self.descriptor} + {self.estimator}"


def caption(records: Sequence[dict[str, Any]], setup: Setup) -> str:
    """The caption of every table of these records."""
    protocol = setup.protocol
    weights = f" (weights {setup.fingerprint})" if setup.fingerprint else ""
    seeds = f"Seed{'s' if len(setup.seeds) > 1 else ''} {', '.join(map(str, setup.seeds))}"
    once = ""
    if isinstance(protocol, Protocol):
        once = "; both clouds are described once for all N and seeds"
        measured = [
            f"{_counted(records)}; {setup.descriptor}{weights} at one point per {protocol.voxel:g} m; "
            f"{_drawn(protocol)}.",
            *_matched_by(setup),
            f"{setup.estimation}; it gets {_given(protocol)}.",
            *_matching(protocol),
        ]
    else:
        measured = [
            f"{_counted(records)}; {setup.descriptor}{weights}. {setup.estimation}.",
            *_verdicts(protocol),
        ]
    sentences = [
        *measured,
        *setup.alterations,
        *_recalls(records, protocol),
        *_errors(records, protocol),
        "Means over scenes weigh every scene the same; pooled means weigh every pair the same. "
        f"{'Scene means' if protocol.scene_mean else 'Pooled means'} unless stated.",
        f"{seeds}." if len(setup.seeds) == 1 else f"{seeds}; ± is the sample standard deviation over them.",
        f"s: CPU seconds per pair (on a GPU, seconds on the clock){once}.",
        f"{', '.join(f'{package} {version}' for package, version in setup.versions.items())}.",
    ]
    if protocol.note:
        sentences.append(protocol.note)
    if setup.left_out:
        sentences.append(f"Pairs left out: {len(setup.left_out)}, the first being {setup.left_out[0]}.")
    return " ".join(sentences)


def _counted(records: Sequence[dict[str, Any]]) -> str:
    scenes = len({record["scene"] for record in records})
    return f"{len(records)} pairs of {scenes} scene{'' if scenes == 1 else 's'}"


def _drawn(protocol: Protocol) -> str:
    unit = "per cloud, drawn before matching" if protocol.draw == "points" else "of whole clouds"
    what = "points" if protocol.draw == "points" else "mutual matches"
    if protocol.samples == (None,):
        return f"all {what} {unit}"
    numbers = ", ".join("all" if n is None else str(n) for n in protocol.samples)
    return f"N random {what} {unit}, N = {numbers}, or all where there are fewer"


def _matched_by(setup: Setup) -> list[str]:
    if not setup.matcher:
        return []
    return [
        f"Matches: by attention between both clouds (weights {setup.matcher}), each point with its likeliest "
        "partner where that is mutual."
    ]


def _given(protocol: Protocol) -> str:
    matches = "mutual matches" if protocol.mutual else "the nearest target point of each source point"
    if protocol.fit == "all":
        return f"{matches}, and all points of both clouds"
    points = "the drawn points" if protocol.draw == "points" else "the matched points"
    return f"{matches}, and of the clouds {points} alone"


def _matching(protocol: Protocol) -> list[str]:
    one_way = "; one-way: of each source point's nearest" if protocol.draw == "points" else ""
    return [
        f"IR: mutual matches closer than {protocol.tau1:g} m, mean, %; "
        f"FMR: pairs with IR above {protocol.tau2:g}, %{one_way}; both over all pairs."
    ]


def _verdicts(protocol: Scoring) -> list[str]:
    metres, degrees = protocol.gates[0]
    return [
        "Recalls are of the motions that it answers with, accepted or not; accepted, accepted right, refused "
        f"right: numbers of pairs, right below {metres:g} m and {degrees:g} deg."
    ]


def _recalls(records: Sequence[dict[str, Any]], protocol: Scoring) -> list[str]:
    official = (
        f"RR: information-matrix RMSE at most {protocol.recall_rmse:g} m, over the "
        f"{sum(not record['consecutive'] for record in records)} pairs of fragments that do not follow "
        "one another, %."
    )
    if any("information_rmse" not in trial for record in records for trial in record["trials"]):
        official = "The data set has no information matrices: the official recall is left out."
    true = f"RR rmse: RMSE over all described source points at most {protocol.recall_rmse:g} m, all pairs, %."
    with_official = protocol.recall != "gate" or not isinstance(protocol, Protocol)
    return [*([official] if with_official else []), true]


def _errors(records: Sequence[dict[str, Any]], protocol: Scoring) -> list[str]:
    if not protocol.gates:
        return []
    metres, degrees = protocol.gates[0]
    words = [
        "RR m / deg: RTE and RRE below both, all pairs, no estimate counting as a failure, %.",
        f"RTE and RRE joint: over the pairs below {metres:g} m and {degrees:g} deg in both; separate: each "
        "over the pairs below its own half; all: every pair with an estimate; std: population.",
    ]
    if "compat" in records[0]["trials"][0]:
        words.append(
            "Truth: odometry refined by ICP. FCGF-order ground truth: the refinement multiplied from the "
            "wrong side, as in FCGF and those after it."
        )
    return words
