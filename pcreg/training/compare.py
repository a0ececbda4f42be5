"""What a training has changed: the same pairs, measured with the weights before it and after it."""

from dataclasses import asdict
from pathlib import Path

from pcreg.evaluation import runner
from pcreg.evaluation.aggregate import overall, rows
from pcreg.evaluation.estimators import NativeRansac
from pcreg.evaluation.protocol import Protocol
from pcreg.features.base import Descriptor
from pcreg.features.cache import FeatureCache
from pcreg.io.pairs import PairDataset
from pcreg.runtime.records import EVALUATING, Records, code_fingerprint


def compare(
    before: Descriptor, after: Descriptor, dataset: PairDataset, protocol: Protocol, folder: Path, seed: int
) -> str:
    """A small table in percent: ratios and recalls before, after, and by how many points they changed.

    Records go to `folder`, a file per descriptor, so that nothing is measured twice.
    """
    names = {"inlier ratio, mutual matches": "IR", "feature match recall": "FMR"}
    for metres, degrees in protocol.gates:
        names[f"registration recall, {metres:g} m and {degrees:g} deg"] = f"RR_{metres:g}m_{degrees:g}deg"
    figures = []
    for descriptor in (before, after):
        measured = {
            "code": code_fingerprint(*EVALUATING),
            "protocol": asdict(protocol),
            "fingerprint": descriptor.fingerprint,
            "seed": seed,
        }
        name = "-".join(descriptor.fingerprint.replace(",", "").split())
        records = Records(folder / f"{name}.jsonl", measured)
        features = FeatureCache(folder / "features", descriptor, {"fingerprint": descriptor.fingerprint})
        scored = runner.run(dataset, descriptor, NativeRansac(), protocol, records, features, seeds=[seed])
        figures.append(overall(rows(scored, protocol.samples[0], seed), protocol))

    width = max(map(len, names))
    lines = [f"{f'{len(dataset.pairs)} held-out pairs, %':{width}}  before   after  change"]
    for name, key in names.items():
        old, new = (100 * each[key] for each in figures)
        change = round(new - old, 1) + 0.0  # no -0.0
        lines.append(f"{name:{width}}  {old:6.1f}  {new:6.1f}  {change:+6.1f}")
    return "\n".join(lines)
