"""Compare confidences with the truth: which answers are accepted, and how many are right.

    python -m pcreg.training.judge simulated --seed 9300000 --out answers.npz
    python benchmarks/confidence.py answers.npz ... [--model FILE]

Each question is answered with the likeliest hypothesis at one scale of `register`. The last lines give the
share of right answers by confidence.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from report import Value, keep, make_parser, run

from pcreg.registration.judge.confidence import MIN_CONFIDENCE, ConfidenceModel
from pcreg.training.judge import WEIGHTS, Answers, answered, calibration_error, reliability


def main() -> None:
    parser, _ = make_parser(__doc__)
    parser.add_argument("answers", type=Path, nargs="+")
    parser.add_argument("--model", type=Path, default=WEIGHTS / "verdict.safetensors")
    options = parser.parse_args()
    model = ConfidenceModel.load(options.model.read_bytes())
    found = {}
    for path in options.answers:
        answers = Answers.load(path)
        found[path.stem] = answers, *answered(answers, model)
    keep((row for name, each in found.items() for row in rows(name, *each)), options, "confidence", "cpu")
    for name, (_, confidence, right) in found.items():
        print(f"{name}: expected calibration error {calibration_error(confidence, right):.3f}")
        for number, mean, share in reliability(confidence, right):
            print(f"{number} answers of confidence {mean:.3f}: {share:.3f} right")


def rows(
    name: str, answers: Answers, confidence: np.ndarray, right: np.ndarray
) -> Iterator[dict[str, Value]]:
    """Rows of overlapping pairs by data set, and of each other kind of question."""
    kinds = np.where(answers.kind == "true", np.char.add(answers.data, ", overlapping"), answers.kind)
    accepted = confidence >= MIN_CONFIDENCE
    for kind in dict.fromkeys(kinds.tolist()):
        asked, wrong = kinds == kind, (kinds == kind) & ~right
        yield {
            "answers": name,
            "pairs": kind,
            "number": int(asked.sum()),
            "right": int((asked & right).sum()),
            "of these accepted": int((asked & right & accepted).sum()),
            "wrong": int(wrong.sum()),
            "accepted wrongly": int((wrong & accepted).sum()),
            "highest confidence of a wrong one": confidence[wrong].max(initial=0.0),
        }


if __name__ == "__main__":
    run(main)
