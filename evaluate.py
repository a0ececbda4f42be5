"""Measure a descriptor and an estimator on the pairs of a data set.

    python evaluate.py data=3dmatch data.root=/data/3dmatch
    python evaluate.py data=3dmatch data.root=/data/3dmatch descriptor=fpfh
    python evaluate.py data=3dlomatch data.root=/data/3dmatch protocol=proto-b estimator=kiss seeds=[0]
    python evaluate.py --help        every setting

Writes `records.jsonl` (one line per pair), `table.md`, `table.tex`, `report.html` and `config.yaml` to
`out`. Run again, the same command goes on where it was stopped; `limit=20` takes a quick look.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf

from pcreg.cli import config
from pcreg.evaluation import runner
from pcreg.evaluation.caption import Setup, caption
from pcreg.evaluation.report import report
from pcreg.evaluation.tables import measured, per_scene, tables
from pcreg.evaluation.trial import score
from pcreg.features.cache import FeatureCache
from pcreg.io.pairs import keep_evenly
from pcreg.runtime.code_fingerprint import code_fingerprint
from pcreg.runtime.errors import InputError
from pcreg.runtime.files import replacing
from pcreg.runtime.lock import locked
from pcreg.runtime.records import Records

# What may differ between a run and its continuation: no figure depends on it.
NON_IDENTITY_KEYS = ("out", "limit", "workers", "cache")


def main(cfg: DictConfig) -> dict[str, float]:
    """Evaluate as configured; returns the figures at the first number of samples, see
    pcreg.evaluation.aggregate.
    """
    _check(cfg)
    protocol = instantiate(cfg.protocol, _convert_="all")
    descriptor = instantiate(cfg.descriptor, _convert_="all")
    estimator = instantiate(cfg.estimator, _convert_="all")
    dataset = instantiate(cfg.data, _convert_="all")
    keep_evenly(dataset, cfg.limit)
    print(f"descriptor: {descriptor.label}")
    setup = Setup(
        benchmark=dataset.name,
        protocol=protocol,
        descriptor=descriptor.name,
        fingerprint=descriptor.fingerprint,
        estimator=estimator.name,
        estimation=estimator.label(protocol),
        seeds=tuple(cfg.seeds),
        versions=runner.versions(estimator.packages),
        left_out=tuple(dataset.left_out),
    )

    name = f"{setup.benchmark}-{protocol.name}-{setup.descriptor}-{setup.estimator}".replace(" ", "-")
    folder = Path(cfg.out or f"outputs/evaluate/{name}")
    with locked(folder, "give this run an out= of its own"):
        records = Records(folder / "records.jsonl", _identity(cfg, setup))
        with replacing(folder / "config.yaml") as temporary:
            temporary.write_text(OmegaConf.to_yaml(cfg, resolve=True))
        features = FeatureCache(cfg.cache, descriptor, _what_features_depend_on(cfg, setup))

        scored = runner.run(
            dataset,
            descriptor,
            estimator,
            protocol,
            records,
            features,
            seeds=setup.seeds,
            workers=cfg.workers,
        )
        print(_write(folder, scored, setup))
        report(scored, setup, dataset, folder / "report.html")
        print(folder)
        return measured(scored, setup, protocol.samples[0])[0]


def _check(cfg: DictConfig) -> None:
    for key in ("limit", "workers"):
        if cfg[key] is not None and cfg[key] < 1:
            raise InputError(f"{key}={cfg[key]}: give 1 or more")
    seeds = cfg.seeds
    whole = seeds and all(type(seed) is int and 0 <= seed < 2**31 for seed in seeds)
    if not whole or len(set(seeds)) < len(seeds):
        raise InputError(f"seeds={seeds}: give whole numbers from 0, each once, such as [0,1,2]")


def _identity(cfg: DictConfig, setup: Setup) -> dict[str, Any]:
    """All that the figures depend on; two runs that differ in it may not share a folder."""
    settings = {key: value for key, value in _plain(cfg).items() if key not in NON_IDENTITY_KEYS}
    settings["data"].pop("workers", None)
    return settings | {
        "code": code_fingerprint(score.__module__, *_named(settings)),
        "weights_checksum": setup.fingerprint,
        "versions": setup.versions,
        "left_out": list(setup.left_out),
    }


def _named(settings: Any) -> Iterator[str]:
    """What of pcreg the settings name: classes, and functions that these are given."""
    if isinstance(settings, dict | list):
        for value in settings.values() if isinstance(settings, dict) else settings:
            yield from _named(value)
    elif isinstance(settings, str) and settings.startswith("pcreg."):
        yield settings


def _what_features_depend_on(cfg: DictConfig, setup: Setup) -> dict[str, Any]:
    """The descriptor's settings, with a checksum of its weights instead of the place where they lie."""
    settings = {key: value for key, value in _plain(cfg.descriptor).items() if key != "weights"}
    return {"descriptor": settings, "weights": setup.fingerprint, "versions": runner.versions()}


def _plain(cfg: DictConfig) -> dict[str, Any]:
    return OmegaConf.to_container(cfg, resolve=True)


def _write(folder: Path, scored: list[dict[str, Any]], setup: Setup) -> str:
    """Write table.md and table.tex; returns what the console shows."""
    words, found = caption(scored, setup), tables(scored, setup)
    shown = "\n\n".join([f"# {setup.title}", words, *(table.markdown() for table in found)])
    scenes = [per_scene(scored, setup, samples) for samples in setup.protocol.samples]
    with replacing(folder / "table.md") as temporary:
        temporary.write_text("\n\n".join([shown, *(table.markdown() for table in scenes)]) + "\n")
    with replacing(folder / "table.tex") as temporary:
        temporary.write_text("\n\n".join(table.latex(words) for table in [*found, *scenes]) + "\n")
    return shown


if __name__ == "__main__":
    config.run("evaluate", main)
