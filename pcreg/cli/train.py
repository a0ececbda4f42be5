"""Train descriptors on pairs of clouds.

    pcreg train experiment=kitti data.root=/data/kitti
    pcreg train experiment=kitti --help     # every setting KEY=VALUE, with the values of this command

The same command continues a stopped training from the last checkpoint in `out`.
"""

from collections.abc import Iterable
from contextlib import nullcontext
from inspect import signature
from pathlib import Path
from typing import Any

import torch
from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf

from pcreg.cli import config
from pcreg.datasets.collate import unwrap_loader_errors
from pcreg.datasets.preparation import Preparation
from pcreg.evaluation.protocol import Protocol
from pcreg.features.fcgf import FCGF
from pcreg.io.pairs import PairDataset, keep_evenly
from pcreg.models.resunet import ResUNet
from pcreg.models.weights import interpolate_weights, load_weights, save_weights
from pcreg.models.weights_file import Architecture
from pcreg.runtime.device import choose_device
from pcreg.runtime.distributed import Ranks, init_distributed
from pcreg.runtime.errors import InputError, refusing
from pcreg.runtime.files import locked, write_text
from pcreg.training.trainer import Trainer
from pcreg.training.validation import check_pairs, compare, feature_match_recall

# Settings that may differ between a training and its continuation
NON_IDENTITY_KEYS = {"out", "resume", "device", "workers", "interpolation", "epochs"}
NON_IDENTITY_KEYS |= {"checkpoint_every", "validate", "validation"}
FEW_PAIRS = 10  # of a validation; with fewer, each pair is more than a tenth of the recall


def main(arguments: list[str]) -> int:
    """Run the command line and return its exit status."""
    return config.run("train", train, arguments, __doc__)


def train(cfg: DictConfig) -> dict[str, float]:
    """Train as configured; returns the figures of the last validation."""
    if cfg.interpolation and not cfg.weights:
        raise InputError(f"interpolation={cfg.interpolation}: needs weights=... to start from; name them")
    device, threads = choose_device(cfg.device), torch.get_num_threads()
    # One core is left to loaders, whatever `workers` is: sums depend on the number of threads
    torch.set_num_threads(max(1, threads - 1))
    try:
        with init_distributed(device) as ranks:
            return _train(cfg, ranks)
    finally:
        torch.set_num_threads(threads)


def _train(cfg: DictConfig, ranks: Ranks) -> dict[str, float]:
    """Train in one of the processes."""
    folder, network = Path(cfg.out), _network(cfg)
    architecture = network.architecture
    protocol = instantiate(cfg.get("protocol"), _convert_="all")
    preparation = preparation_of(cfg, architecture)
    trainer = _trainer(cfg, network, ranks)
    with ranks.main_process_first():
        batches = instantiate(cfg.batches)(preparation=preparation, geometry=architecture, ranks=ranks)
        if ranks.first:  # the only process that validates
            validation = instantiate(cfg.validation)
            keep_evenly(validation, cfg.validate.pairs)
            check_pairs(validation)
    with locked(folder, "give this one an out= of its own") if ranks.first else nullcontext():
        if cfg.resume and trainer.resume() and ranks.first:
            print(f"resuming {folder} at epoch {trainer.state.epoch}, batch {trainer.state.batch}")
        if trainer.state.epoch > cfg.epochs:
            done = f"{folder} has trained for {trainer.state.epoch}"
            raise InputError(f"epochs={cfg.epochs}: {done}; give as many or more, or another out=")

        def validate(network: ResUNet) -> dict[str, float]:
            descriptor, chosen = FCGF(network, ranks.device, scales=tuple(cfg.scales)), cfg.validate
            figures = feature_match_recall(descriptor, validation, chosen.points, chosen.tau, chosen.minimum)
            if cfg.weights and not figures["feature_match_recall"]:
                print("note: no pair matches; check the direction and the unit of poses or transforms")
            return figures

        if ranks.first:
            write_text(folder / "config.yaml", OmegaConf.to_yaml(cfg))
            count = len(validation.pairs)
            print(f"training on {batches} on {ranks.device}, validating on {count} pairs; {folder}")
            if count < FEW_PAIRS:
                print(f"note: fewer than {FEW_PAIRS} pairs cannot tell which weights are better; give more")
        with unwrap_loader_errors():
            figures = trainer.fit(batches, cfg.epochs, validate, cfg.validate.every)
        if cfg.weights and ranks.first:
            _finish(cfg, trainer.output_network, ranks.device, validation, protocol)
        return figures


def _trainer(cfg: DictConfig, network: ResUNet, ranks: Ranks) -> Trainer:
    optimizer = optimizer_of(cfg, network.parameters(), ranks.device)
    return Trainer(
        network,
        optimizer,
        cfg.out,
        scheduler=instantiate(cfg.scheduler, optimizer),
        precision=cfg.precision,
        loss=instantiate(cfg.loss),
        checkpoint_every=cfg.checkpoint_every,
        ema=cfg.ema,
        seed=cfg.seed,
        ranks=ranks,
        identity=_identity(cfg),
    )


def _finish(
    cfg: DictConfig, network: ResUNet, device: str, validation: PairDataset, protocol: Protocol | None
) -> None:
    """Write interpolated weights, and print how the final weights compare with those of the start."""
    start, folder = load_weights(cfg.weights, {"voxel": network.architecture.voxel}), Path(cfg.out)
    if cfg.interpolation:
        network = interpolate_weights(start, network, cfg.interpolation)
        save_weights(folder / "mixed.safetensors", network)
    else:  # an earlier run with another interpolation may have written it
        (folder / "mixed.safetensors").unlink(missing_ok=True)
    if protocol:
        before, after = FCGF(start, device), FCGF(network, device)
        print(compare(before, after, validation, protocol, folder / "compared", cfg.seed))


def preparation_of(cfg: DictConfig, architecture: Architecture) -> Preparation:
    """The preparation of clouds for a network."""
    return Preparation(
        architecture.voxel,
        instantiate(cfg.augment, _convert_="all"),
        positive_radius=cfg.positive_radius * architecture.voxel,
        maximum_points=cfg.maximum_points,
        snap=architecture.snap,
        scales=tuple(cfg.scales),
    )


def optimizer_of(cfg: DictConfig, parameters: Iterable[Any], device: str) -> torch.optim.Optimizer:
    """Build the optimizer; on a GPU it is fused, if torch has a fused version."""
    make = instantiate(cfg.optimizer, _partial_=True)
    fused = {"fused": True} if device != "cpu" and "fused" in signature(make).parameters else {}
    with refusing("optimizer: these settings cannot be used ({error}); change them", ValueError):
        return make(parameters, **fused)


def _network(cfg: DictConfig) -> ResUNet:
    """Load the network to train from `weights`, or make a new one."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(cfg.seed)
        if cfg.weights:
            network = load_weights(cfg.weights, OmegaConf.to_container(cfg.model, resolve=True))
        else:
            network = ResUNet(instantiate(cfg.model, _convert_="all"))
    network.frozen_norms = cfg.frozen_norms
    return network


def _identity(cfg: DictConfig) -> dict[str, Any]:
    """Settings that have to be equal in a training and its continuation."""
    settings = OmegaConf.to_container(cfg, resolve=True)
    settings["batches"].pop("workers", None)
    return {key: value for key, value in settings.items() if key not in NON_IDENTITY_KEYS}
