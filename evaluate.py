"""Measure a descriptor on the pairs of a data set.

    python evaluate.py data=3dmatch data.root=/data/3dmatch descriptor=fpfh
    python evaluate.py --help        every setting

Writes `records.jsonl` (one line per pair), `table.md` and `config.yaml` to `out`. Run again, the same
command goes on where it was stopped; `limit=20` takes a quick look (truth that has to be computed, by
ICP on KITTI, is computed for the whole list first; data.sequences shortens it).
"""

from pathlib import Path

from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf

from pcreg import benchmark, entry
from pcreg.errors import InputError
from pcreg.files import replacing
from pcreg.pair import evenly
from pcreg.published import PUBLISHED
from pcreg.records import Records
from pcreg.tables import overall, table

FREE = {"out", "limit"}  # what may differ between a run and its continuation


def main(cfg: DictConfig) -> dict[str, float]:
    """Evaluate as configured; returns the figures averaged over all pairs, see pcreg.tables."""
    for key, least in (("limit", 1), ("seed", 0)):
        if cfg[key] is not None and cfg[key] < least:
            raise InputError(f"{key}={cfg[key]}: give {least} or more")
    protocol = instantiate(cfg.protocol, _convert_="all")
    descriptor = instantiate(cfg.descriptor, _convert_="all")
    dataset = instantiate(cfg.data, _convert_="all")
    dataset.pairs = evenly(dataset.pairs, cfg.limit)

    folder = Path(cfg.out or f"outputs/evaluate/{protocol.name}-{descriptor.name}")
    settings = OmegaConf.to_container(cfg, resolve=True)
    identity = {key: value for key, value in settings.items() if key not in FREE}
    identity |= {"fingerprint": descriptor.fingerprint, "versions": benchmark.versions()}
    records = Records(folder / "records.jsonl", identity)
    with replacing(folder / "config.yaml") as temporary:
        temporary.write_text(OmegaConf.to_yaml(cfg, resolve=True))

    scored = benchmark.run(dataset, descriptor, protocol, records, seed=cfg.seed)
    text = table(scored, protocol, f"{protocol.name}, {descriptor.name}", PUBLISHED.get(protocol.name, ()))
    with replacing(folder / "table.md") as temporary:
        temporary.write_text(text)
    print(f"{text}\n{folder}")
    return overall(scored, protocol)


if __name__ == "__main__":
    entry.run("evaluate", main)
