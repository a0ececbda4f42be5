"""The result of registering two clouds."""

import builtins
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from html import escape
from importlib import import_module
from os.path import expanduser
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pcreg.geometry import se3
from pcreg.io.cloud import Cloud
from pcreg.registration.clouds.inputs import Points, points_of
from pcreg.registration.clouds.local_frame import between_given
from pcreg.registration.clouds.prepared import PreparedCloud
from pcreg.registration.judge.confidence import MIN_CONFIDENCE, posterior
from pcreg.registration.judge.evidence import Evidence
from pcreg.runtime import VERSION
from pcreg.runtime.errors import InputError
from pcreg.runtime.files import write_text


@dataclass(frozen=True, eq=False)
class Registration:
    """The transform found and the verdict on it. Results compare by identity.

    Attributes:
        T_target_source: (4, 4), moves the source into the frame of the target, p_t = s R p_s + t, in metres;
            to be ignored if not registered.
        registered: True if the transform is accepted.
        confidence: Probability that it is right, at least 0.7 exactly when registered.
        reason: The verdict in words.
        evidence: The numbers behind the confidence.
        voxel: The scale at which the transform was found, metres.
        matches: (inliers, 2), rows of source and target, of the array or of the file as given.
        matched_points: (inliers, 2, 3), metres, coordinates of the matches in the given frames.
        viewpoints: Stated sensor positions of source and target, (3,) or (N, 3), metres; None if estimated.
        scale: Metres per unit of the source, the s of T_target_source; 1 without `scale=True`.
        covariance: (6, 6), of the error x in T = T_target_source exp(x): rotations in radians about the axes
            of the source's frame, then translations in metres along them. None if not registered, or scaled.
            Far from the origin it loses digits: for an object in UTM coordinates it cannot be inverted.
        local_covariance: The same, but about axes through the lower corner of the source.
        alternative: (4, 4), another transform that is about as likely or, from `verify`, fits better.
        notes: Sentences on what may be wrong with the clouds.
        seconds: Time by step.
        units: Units in which the source was given.
        clouds: Source and target, for the picture; kept in a notebook alone.
    """

    T_target_source: NDArray[np.float64]
    registered: bool
    confidence: float
    reason: str
    evidence: Evidence
    voxel: float
    matches: NDArray[np.int64]
    matched_points: NDArray[np.float64]
    viewpoints: tuple[NDArray[np.float64] | None, NDArray[np.float64] | None] = (None, None)
    scale: float = 1.0
    covariance: NDArray[np.float64] | None = None
    local_covariance: NDArray[np.float64] | None = None
    alternative: NDArray[np.float64] | None = None
    notes: tuple[str, ...] = ()
    seconds: dict[str, float] = field(default_factory=dict)
    units: str = "m"
    clouds: tuple[Cloud, Cloud] | None = None

    @property
    def inliers(self) -> int:
        """The number of matches that the transform brings together."""
        return self.evidence.inliers

    @property
    def overlap(self) -> float:
        """The fraction of the source, downsampled to `voxel`, with a target point within one voxel."""
        return self.evidence.overlap

    @property
    def rmse(self) -> float:
        """The RMS distance in metres from the points of the overlap to the target."""
        return self.evidence.rmse

    @property
    def verdict(self) -> str:
        """The verdict in words, with the confidence."""
        return f"{'registered' if self.registered else 'NOT registered'}, confidence {self.confidence:.2f}"

    def __repr__(self) -> str:
        """The verdict in a line."""
        return f"<Registration: {self.verdict}: {self.reason}>"

    def _repr_html_(self) -> str:
        """The verdict and the picture, as notebooks show them."""
        # Imported by name, as pcreg.viz is a layer above
        picture = import_module("pcreg.viz.files").embedded(self) if self.clouds else ""
        return f"<p>{escape(self.verdict)}: {escape(self.reason)}</p>{picture}"

    def transform(
        self, points: Points, units: str | None = None, columns: int | None = None
    ) -> NDArray[np.float64]:
        """Move points of the source into the frame of the target.

        Args:
            points: As `register` takes a cloud: a path, an array or tensor (N, 3), or a cloud of Open3D.
            units: Units of `points`, as in `register`; by default those of the registered source.
            columns: As in `register`.

        Returns:
            (N, 3), metres, a row for each row of the array or file; NaN for rows that are not finite.

        Raises:
            InputError: For a file or an array that holds no points.
        """
        rows = points_of(points, "points", units or self.units, columns)
        return np.asarray(se3.transform(self.T_target_source, rows))

    def to_dict(self) -> dict[str, Any]:
        """Verdict, transform and evidence as plain values, for JSON; matches and seconds are left out."""
        return {
            "registered": self.registered,
            "confidence": self.confidence,
            "reason": self.reason,
            "notes": list(self.notes),
            "T_target_source": self.T_target_source.tolist(),
            "scale": self.scale,
            "covariance": None if self.covariance is None else self.covariance.tolist(),
            "voxel": self.voxel,
            "evidence": asdict(self.evidence),
            "alternative": None if self.alternative is None else self.alternative.tolist(),
            "viewpoints": {
                side: None if place is None else place.tolist() if place.ndim == 1 else "per point"
                for side, place in zip(("source", "target"), self.viewpoints, strict=True)
            },
        }

    def of_clouds(self, source: PreparedCloud, target: PreparedCloud) -> "Registration":
        """Convert from local frames of clouds to the given ones, and add their notes.

        The covariance of a refused motion is left out.
        """
        here, there = source.frame, target.frame
        sides = (source, "source"), (target, "target")
        notes = [f"{cloud.name or side}: {note}" for cloud, side in sides for note in cloud.notes]
        local = self.covariance if self.registered else None
        to_given = se3.adjoint(here.T_given_local)
        alternative = None if self.alternative is None else between_given(self.alternative, here, there)
        return replace(
            self,
            T_target_source=between_given(self.T_target_source, here, there),
            covariance=None if local is None else to_given @ local @ to_given.T,
            local_covariance=local,
            alternative=alternative,
            matched_points=self.matched_points + np.stack([here.corner, there.corner]),
            viewpoints=(source.stated, target.stated),
            units=source.units,
            clouds=(source.cloud, target.cloud) if hasattr(builtins, "__IPYTHON__") else None,
            notes=(*notes, *self.notes),
        )

    def refused(self, confidence: float, reason: str, **changed: Any) -> "Registration":
        """The same registration, refused for a reason."""
        return replace(
            self, registered=False, confidence=confidence, reason=reason, covariance=None, **changed
        )

    def among(self, others: Sequence["Registration"], reason: str, **changed: Any) -> "Registration":
        """Lower the confidence, as at most one of this and `others` is right; refuse if it is too low."""
        confidence = posterior([each.confidence for each in (self, *others)])[0]
        if self.registered and confidence < MIN_CONFIDENCE:
            return self.refused(confidence, reason, **changed)
        return replace(self, confidence=min(confidence, self.confidence))

    def save(self, path: str | Path) -> None:
        """Write `to_dict` as JSON to a file, which is replaced in one step.

        Raises InputError if its folder is missing or cannot be written to.
        """
        path = Path(expanduser(path))
        if not path.parent.is_dir():
            raise InputError(f"{path}: no such folder; make it or name another")
        write_text(path, json.dumps(self.to_dict(), indent=2) + "\n")


def record_of(
    found: Registration, files: tuple[str, str], units: Sequence[str], descriptor: str, seed: int
) -> dict[str, Any]:
    """A registration of two files, and its settings, as plain values."""
    record = {"source": files[0], "target": files[1], **found.to_dict(), "seconds": found.seconds}
    return record | {"units": list(units), "descriptor": descriptor, "seed": seed, "version": VERSION}
