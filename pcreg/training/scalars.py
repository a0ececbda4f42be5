"""What a training reports of its steps, in TensorBoard's files."""

from pathlib import Path
from types import TracebackType


class Scalars:
    """Holds what it is given until there is time to write it, which takes the host a millisecond a step."""

    def __init__(self, folder: Path | None, purge_step: int):
        """Steps from `purge_step` on in the files of `folder` are void. None: nothing is written."""
        self._writer = None
        if folder is not None:
            from torch.utils.tensorboard import SummaryWriter  # takes long to import

            self._writer = SummaryWriter(str(folder), purge_step=purge_step)
        self._held: list[tuple[str, float, int]] = []

    def __enter__(self) -> "Scalars":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.write()
        if self._writer is not None:
            self._writer.close()

    def hold(self, scalars: dict[str, float], step: int) -> None:
        self._held += [(name, value, step) for name, value in scalars.items()]

    def write(self) -> None:
        """Write what is held."""
        held, self._held = self._held, []
        if self._writer is not None:
            for scalar in held:
                self._writer.add_scalar(*scalar)
