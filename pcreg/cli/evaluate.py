"""Measure a descriptor and an estimator, or all of `pcreg.register`, on the pairs of a data set.

    pcreg evaluate data=3dmatch data.root=/data/3dmatch
    pcreg evaluate data=3dlomatch data.root=/data/3dmatch protocol=proto-b estimator=kiss seeds=[0]
    pcreg evaluate data=3dlomatch data.root=/data/3dmatch protocol=system seeds=[0]
    pcreg evaluate data=kitti --help        # every setting KEY=VALUE, with the values of this command

Writes `records.jsonl` (one line per pair), `tables.json`, `table.md`, `table.tex`, `report.html` and
`config.yaml` to `out`. The same command continues a stopped run. `limit=20` takes 20 pairs, spread evenly.
"""

import json
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf, open_dict

from pcreg.cli import config
from pcreg.datasets.altered import EveryBeam, Moved
from pcreg.evaluation import runner
from pcreg.evaluation.protocol import Protocol, Setup, caption
from pcreg.evaluation.report import report
from pcreg.evaluation.tables import measured, per_scene, tables
from pcreg.features.cache import FeatureCache
from pcreg.io.pairs import PairDataset, keep_evenly
from pcreg.runtime.errors import InputError
from pcreg.runtime.files import locked, write_text
from pcreg.runtime.records import EVALUATING, Records, code_fingerprint

# Groups that the system does not use, with their default choice in configs/evaluate.yaml
DEFAULT_CHOICES = {"descriptor": "fcgf", "estimator": "open3d"}
UNNAMED = "_target_", "root", "cache", "workers"  # settings of data that change no figure; captions omit them
UNALTERED = {"beams": 1, "both_beams": False, "moved": 0}  # values that leave the clouds as they are
Measure = Callable[..., list[dict[str, Any]]]  # scores pairs into records

# Settings that may differ between a run and its continuation, as no figure depends on them
NON_IDENTITY_KEYS = ("out", "limit", "workers", "cache")


def main(arguments: list[str]) -> int:
    """Run the command line and return its exit status."""
    return config.run("evaluate", evaluate, arguments, __doc__)


def evaluate(cfg: DictConfig) -> dict[str, float]:
    """Evaluate as configured; returns the figures at the first number of samples."""
    _check(cfg)
    protocol = instantiate(cfg.protocol, _convert_="all")
    if isinstance(protocol, runner.System):
        setup, dataset, measure = _system(cfg, protocol)
    else:
        setup, dataset, measure = _descriptor_and_estimator(cfg, protocol)

    name = f"{setup.benchmark}-{protocol.name}-{setup.descriptor}-{setup.estimator}".replace(" ", "-")
    folder = Path(cfg.out or f"outputs/evaluate/{name}")
    with locked(folder, "give this run an out= of its own"):
        records = Records(folder / "records.jsonl", _identity(cfg, setup, dataset))
        write_text(folder / "config.yaml", OmegaConf.to_yaml(cfg, resolve=True))
        scored = measure(records, seeds=setup.seeds, workers=cfg.workers)
        print(_write(folder, scored, setup))
        report(scored, setup, dataset, folder / "report.html")
        print(folder)
        return measured(scored, setup, setup.protocol.samples[0])[0]


def _descriptor_and_estimator(cfg: DictConfig, protocol: Protocol) -> tuple[Setup, PairDataset, Measure]:
    descriptor, estimator = (instantiate(cfg[group], _convert_="all") for group in DEFAULT_CHOICES)
    dataset = _dataset(cfg)
    print(f"descriptor: {descriptor.label}")
    setup = _setup(
        cfg,
        dataset,
        protocol=protocol,
        descriptor=descriptor.name,
        fingerprint=descriptor.fingerprint,
        estimator=estimator.name,
        versions=runner.versions(estimator.packages),
    )

    # Weights are identified by their checksum, not by their path.
    settings = {key: value for key, value in _plain(cfg.descriptor).items() if key != "weights"}
    identity = {"descriptor": settings, "weights": setup.fingerprint, "versions": runner.versions()}
    features = FeatureCache(cfg.cache, descriptor, identity)
    return setup, dataset, partial(runner.run, dataset, descriptor, estimator, protocol, features=features)


def _system(cfg: DictConfig, protocol: runner.System) -> tuple[Setup, PairDataset, Measure]:
    """Setup, data and measurement of the system; InputError if a descriptor or estimator was chosen."""
    for group, default in DEFAULT_CHOICES.items():
        with open_dict(cfg):
            chosen = cfg.pop(group)
        if chosen != OmegaConf.load(config.CONFIGS / group / f"{default}.yaml"):
            raise InputError(
                f"{group}=...: protocol={protocol.name} has its own {group}; leave it out, or use "
                "the settings protocol.* that --help protocol=system lists"
            )
    fingerprint = protocol.registrar.fingerprint  # wrong weights are refused before the data is read
    dataset = _dataset(cfg)
    system = protocol.on(dataset)
    named = {"descriptor": system.descriptor, "fingerprint": fingerprint, "estimator": "register"}
    setup = _setup(cfg, dataset, protocol=system, versions=runner.versions(), **named)
    return setup, dataset, partial(runner.run_system, dataset, system)


def _setup(cfg: DictConfig, dataset: PairDataset, **named: Any) -> Setup:
    altered = tuple(
        f"data.{key}={value}"
        for key, value in config.flat(_plain(cfg.data)).items()
        if key.rpartition(".")[2] not in UNNAMED and not isinstance(value, dict | None)
        if value != UNALTERED.get(key)
    )
    altered += (f"limit={cfg.limit}",) if cfg.limit else ()
    left_out, seeds = tuple(dataset.left_out), tuple(cfg.seeds)
    return Setup(dataset.name, seeds=seeds, alterations=altered, left_out=left_out, **named)


def _dataset(cfg: DictConfig) -> PairDataset:
    """Data set of the pairs that are scored, altered as `data.beams` and `data.moved` say."""
    cfg = cfg.copy()
    with open_dict(cfg):
        beams, both, moved = (cfg.data.pop(name) for name in UNALTERED)
    dataset = instantiate(cfg.data, _convert_="all")
    keep_evenly(dataset, cfg.limit)
    if beams != 1:
        dataset = EveryBeam(dataset, beams, both)
    return Moved(dataset, moved, cfg.seeds[0]) if moved else dataset


def _check(cfg: DictConfig) -> None:
    if isinstance(cfg.workers, str) and ":" not in cfg.workers:
        raise InputError(
            f"workers={cfg.workers}: give 1 or more, null, or the address of a Dask scheduler such as "
            "tcp://10.0.0.1:8786"
        )
    if cfg.data.both_beams and cfg.data.beams == 1:
        raise InputError("data.both_beams=true: all beams are kept; set data.beams too, as in data.beams=4")
    if not cfg.seeds or len(set(cfg.seeds)) < len(cfg.seeds):
        raise InputError(f"seeds={cfg.seeds}: give whole numbers from 0, each once, such as [0,1,2]")
    if cfg.data.moved and cfg.protocol.get("viewpoint") == "sensor":
        raise InputError(
            f"protocol.viewpoint=sensor: with data.moved={cfg.data.moved:g} the sensors are not at the "
            "origins; leave one of the two out"
        )


def _identity(cfg: DictConfig, setup: Setup, dataset: PairDataset) -> dict[str, Any]:
    """Everything on which the figures depend; runs that differ in it may not share a folder."""
    settings = {key: value for key, value in _plain(cfg).items() if key not in NON_IDENTITY_KEYS}
    for name in ("workers", "cache"):
        settings["data"].pop(name, None)
    return settings | {
        "code": code_fingerprint(*EVALUATING),
        "weights_checksum": setup.fingerprint,
        "versions": setup.versions,
        "scans": getattr(dataset, "fingerprint", ""),  # of a folder whose files may change
        "left_out": list(setup.left_out),
    }


def _plain(cfg: DictConfig) -> dict[str, Any]:
    return OmegaConf.to_container(cfg, resolve=True)


def _write(folder: Path, scored: list[dict[str, Any]], setup: Setup) -> str:
    """Write table.md, table.tex and tables.json; returns what the console shows."""
    words, found = caption(scored, setup), tables(scored, setup)
    shown = "\n\n".join([f"# {setup.title}", words, *(table.markdown() for table in found)])
    scenes = [per_scene(scored, setup, samples) for samples in setup.protocol.samples]
    write_text(folder / "table.md", "\n\n".join([shown, *(table.markdown() for table in scenes)]) + "\n")
    write_text(folder / "table.tex", "\n\n".join(table.latex(words) for table in [*found, *scenes]) + "\n")
    write_text(folder / "tables.json", json.dumps([asdict(table) for table in [*found, *scenes]], indent=1))
    return shown
