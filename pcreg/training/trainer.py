"""Train a network on batches of pairs.

A training is a function of its seed. A training that is stopped at any batch and resumed gives the same bits
as one that was not stopped (on the CPU with as many threads; GPU kernels may sum in another order). All
randomness is drawn from (seed, epoch, batch).
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol

import numpy as np
import torch

from pcreg.datasets.collate import TrainingBatch, each_within
from pcreg.kernels.pyramid import Pyramid
from pcreg.models.resunet import ResUNet
from pcreg.models.weights import save_weights
from pcreg.runtime.device import deterministic
from pcreg.runtime.distributed import ALONE, Ranks
from pcreg.runtime.errors import InputError
from pcreg.runtime.progress import bar
from pcreg.runtime.termination import deferred
from pcreg.training.checkpoint import TrainState, load_own_checkpoint, save_checkpoint
from pcreg.training.graphed import GraphedNetwork
from pcreg.training.losses import Loss
from pcreg.training.optimisation import AveragedNetwork, as_one
from pcreg.training.transfers import Outcome, on_device

log = logging.getLogger(__name__)


class Batches(Protocol):
    def __len__(self) -> int: ...

    def epoch(self, epoch: int, first: int = 0) -> Iterator[TrainingBatch | None]:
        """Yield batches of an epoch from number `first` on; None without a usable pair."""
        ...


class Trainer:
    """Trainer that writes last.pt, best.safetensors, last.safetensors and tensorboard/."""

    def __init__(
        self,
        network: ResUNet,
        optimizer: torch.optim.Optimizer,
        folder: str | Path,
        *,
        loss: Loss,
        scheduler: torch.optim.lr_scheduler.LRScheduler | None = None,  # stepped once per epoch
        precision: str = "float32",  # or bfloat16: of the convolutions; weights and loss stay float32
        checkpoint_every: int = 200,  # optimiser steps
        ema: float = 0.0,  # decay of an average of the weights, which is then validated and written; 0: none
        seed: int = 0,
        ranks: Ranks = ALONE,
        identity: dict[str, Any] | None = None,  # settings that a resumed training must share
    ):
        if precision == "bfloat16" and ranks.device == "cpu":
            raise InputError("precision=bfloat16 needs a GPU; give precision=float32, or device=cuda")
        self.network = network.to(ranks.device)
        ranks.share_state(self.network)
        self.parameters = list(self.network.parameters())
        self.averaged = AveragedNetwork(self.network, ema) if ema else None
        self.optimizer = optimizer
        self.scheduler = scheduler or torch.optim.lr_scheduler.ConstantLR(optimizer, 1.0)
        self.folder, self.loss = Path(folder), loss
        self.checkpoint_every, self.seed, self.ranks = checkpoint_every, seed, ranks
        # Computes the descriptors of a pyramid, with gradients
        self.describe: Callable[[Pyramid], torch.Tensor] = self.network
        if ranks.device != "cpu":
            dtype = torch.bfloat16 if precision == "bfloat16" else None
            self.describe = GraphedNetwork(self.network, dtype)
        self.identity = identity or {}
        self.state = TrainState()
        self._writer: Any = None  # SummaryWriter, in the first process
        self._unread: Outcome | None = None  # outcome of the last step, until it is read
        self._note = ""  # text beside the progress bar

    @property
    def output_network(self) -> ResUNet:
        """The network that is validated and written: the average, given `ema`."""
        return self.averaged.module if self.averaged else self.network

    def resume(self) -> bool:
        """Continue from last.pt, if there is one. Raises InputError if other settings wrote it."""
        path = self.folder / "last.pt"
        if not path.exists():
            return False
        state = load_own_checkpoint(path, self.identity)
        self.optimizer.step()  # else the scheduler warns; everything that this changes is loaded below
        self.network.load_state_dict(state["network"])
        if self.averaged:
            self.averaged.load_state_dict(state["averaged"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.scheduler.load_state_dict(state["scheduler"])
        self.state = TrainState(**state["state"])
        return True

    def fit(
        self,
        batches: Batches,
        epochs: int,
        validate: Callable[[ResUNet], dict[str, float]],
        validate_every: int = 1,
    ) -> dict[str, float]:
        """Train up to `epochs`; returns the figures of the last validation.

        `validate` runs before the first epoch, after every `validate_every` epochs, and after the last. It
        returns `feature_match_recall` and `inlier_ratio`, by which the best weights are kept. Ctrl-C and
        SIGTERM are raised between two steps, after last.pt is written. Raises InputError, with the names of
        the pairs, if a loss or gradient is not finite, and for an epoch without usable pairs.
        """
        figures: dict[str, float] = {}
        with (
            deterministic() if self.ranks.device == "cpu" else nullcontext(),  # slower on GPUs
            deferred() as deferral,
            self._summary_writer() if self.ranks.first else nullcontext() as self._writer,
            bar("training", "{task.fields[note]}", disable=not self.ranks.first) as progress,
        ):
            done = self.state.epoch * len(batches) + self.state.batch
            task = progress.add_task("training", total=epochs * len(batches), completed=done, note="")
            stoppable = partial(self._stoppable, deferral)
            if self.state == TrainState():
                with stoppable():
                    self._validate(validate, 0)
            while self.state.epoch < epochs:
                for _ in self._epoch(batches, stoppable):
                    progress.update(task, advance=1, note=self._note)
                epoch = self.state.epoch + 1
                if epoch % validate_every == 0 or epoch == epochs:
                    with stoppable():
                        figures = self._validate(validate, epoch)
                self.scheduler.step()
                self.state.epoch, self.state.batch = epoch, 0
                self._save()
            with stoppable():
                return figures or self._validate(validate, self.state.epoch)

    def _summary_writer(self) -> Any:
        """SummaryWriter of TensorBoard, which closes its file at the end of a block."""
        from torch.utils.tensorboard import SummaryWriter  # takes long to import

        # Scalars of steps after the checkpoint exist already and will be written again
        return SummaryWriter(str(self.folder / "tensorboard"), purge_step=self.state.step + 1)

    def _epoch(self, batches: Batches, stoppable: Callable) -> Iterator[None]:
        """Train on the rest of an epoch; yields after each batch."""
        self.network.train()  # validation left the network in evaluation mode
        trained, asked = self.state.batch > 0, perf_counter()
        made = each_within(stoppable, batches.epoch(self.state.epoch, self.state.batch))
        for batch in on_device(self.ranks.had_by_all(made), self.ranks.device):
            came = perf_counter()
            if batch is not None:
                outcome = self._step(batch)
                self._read()  # the outcome of the step before, while the GPU works
                self._unread, trained = outcome, True
                times = {"time/wait": came - asked, "time/step": perf_counter() - came}
                self._write(times, self.state.step)
            self.state.batch += 1
            if batch is not None and self.state.step % self.checkpoint_every == 0:
                self._save()
            yield
            asked = perf_counter()
        if not trained:
            raise InputError(
                f"epoch {self.state.epoch}: no pair has enough matching points to train on; "
                "check the poses, and that model.voxel suits the clouds"
            )

    @contextmanager
    def _stoppable(self, deferral: deferred) -> Iterator[None]:
        """Let pending or new Ctrl-C and SIGTERM be raised here, after writing last.pt.

        Of several processes of a training only the first is stopped in this way; the others end with it.
        """
        try:
            with deferral.lifted() if self.ranks.first else nullcontext():
                yield
        except (KeyboardInterrupt, SystemExit):
            if self.state != TrainState():
                self._save()
            raise

    def _step(self, batch: TrainingBatch) -> Outcome:
        """Make an optimiser step without waiting for the device; `_read` raises for a non-finite loss."""
        features = self.describe(batch.pyramid)
        state = np.random.SeedSequence([self.seed, self.state.epoch, self.state.batch]).generate_state(1)
        generator = torch.Generator().manual_seed(int(state[0]))
        loss = self.loss(*batch.descriptors(features.float()), batch, generator)
        self.optimizer.zero_grad()
        loss["total"].backward()
        gradient = as_one(self.parameters)
        self.ranks.average(gradient)
        self.state.step += 1
        rate = self.scheduler.get_last_lr()[0]
        outcome = Outcome(self.state.step, batch, rate, loss, gradient.norm())
        self.optimizer.step()
        if self.averaged:
            self.averaged.update(self.network)
        return outcome

    def _read(self) -> None:
        """Wait for the outcome of the last step and write it; repeatable after a signal."""
        if self._unread is not None:
            found = self._unread.read()
            self._write(found, self._unread.step)
            self._note = f"loss {found['loss/total']:.3f}"
            self._unread = None

    def _write(self, scalars: dict[str, float], step: int) -> None:
        for name, value in scalars.items() if self._writer else ():
            self._writer.add_scalar(name, value, step)

    def _validate(self, validate, epoch: int) -> dict[str, float]:
        self._read()
        if not self.ranks.first:
            return {}
        figures = validate(self.output_network)
        written = ", ".join(f"{name.replace('_', ' ')} {value:.3f}" for name, value in figures.items())
        log.info("epoch %d: %s", epoch, written)
        self._write({f"validation/{name}": value for name, value in figures.items()}, self.state.step)
        if self.state.step:
            self._keep_best(figures)
        return figures

    def _keep_best(self, figures: dict[str, float]) -> None:
        save_weights(self.folder / "last.safetensors", self.output_network)
        score = [figures["feature_match_recall"], figures["inlier_ratio"]]
        if score > self.state.best:
            save_weights(self.folder / "best.safetensors", self.output_network)
            self.state.best = score  # after the file is written, as a signal may come in between

    def _save(self) -> None:
        self._read()
        if not self.ranks.first:
            return
        save_checkpoint(
            self.folder / "last.pt",
            network=self.network.state_dict(),
            averaged=self.averaged.state_dict() if self.averaged else None,
            optimizer=self.optimizer.state_dict(),
            scheduler=self.scheduler.state_dict(),
            state=asdict(self.state),
            identity=self.identity,
        )
