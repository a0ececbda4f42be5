"""The setup of a benchmark's run, and the caption that prints it."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pcreg.evaluation.protocol import Scoring


@dataclass(frozen=True)
class Setup:
    """All but the pairs on which the figures of a run depend."""

    benchmark: str
    protocol: Scoring
    descriptor: str
    fingerprint: str  # of the weights; "" if nothing is learned
    estimator: str
    seeds: tuple[int, ...]
    versions: dict[str, str]
    alterations: tuple[str, ...] = ()  # of the benchmark's clouds, as settings
    matcher: str = ""  # fingerprint of the weights of a learned matcher; "": nearest descriptors
    left_out: tuple[str, ...] = ()  # pairs of the benchmark that are not in this run, with the reason

    @property
    def title(self) -> str:
        return f"{self.benchmark}, {self.protocol.name}: {self.descriptor} + {self.estimator}"


def caption(records: Sequence[dict[str, Any]], setup: Setup) -> str:
    """Everything that the figures of these records depend on, as names and settings."""
    scenes = len({record["scene"] for record in records})
    settings = {name: value for name, value in asdict(setup.protocol).items() if name not in ("name", "note")}
    weights = f" (weights {setup.fingerprint})" if setup.fingerprint else ""
    parts = [
        f"{len(records)} pairs of {scenes} scene{'' if scenes == 1 else 's'}",
        f"descriptor {setup.descriptor}{weights}",
        *([f"matcher attention (weights {setup.matcher})"] if setup.matcher else []),
        f"estimator {setup.estimator}",
        f"protocol {setup.protocol.name}: {', '.join(f'{key}={_text(settings[key])}' for key in settings)}",
        *setup.alterations,
        f"seeds {_text(setup.seeds)}{', ± sample standard deviation' if len(setup.seeds) > 1 else ''}",
        ", ".join(f"{package} {version}" for package, version in setup.versions.items()),
        *([f"{len(setup.left_out)} pairs left out, first {setup.left_out[0]}"] if setup.left_out else []),
    ]
    return " ".join([f"{'; '.join(parts)}.", setup.protocol.note]).strip()


def _text(value: Any) -> str:
    """A setting as a command line takes it."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_text, value))}]"
    if isinstance(value, bool) or value is None:
        return {None: "null", True: "true", False: "false"}[value]
    return f"{value:g}" if isinstance(value, float) else str(value)
