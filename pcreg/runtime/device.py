"""Where tensors live."""

from importlib.util import find_spec

from pcreg.runtime.errors import InputError


def choose_device(name: str) -> str:
    """`cpu`, `cuda` or `cuda:N` if this machine has it; for `auto`, `cuda` if it can be had, else `cpu`.

    Raises InputError for a device that is not there.
    """
    if name == "cpu":
        return name
    import torch  # takes a second

    if name == "auto":
        return "cuda" if torch.cuda.is_available() and find_spec("triton") else "cpu"
    kind, _, number = name.partition(":")
    there = (
        kind == "cuda" and (not number or number.isdecimal()) and int(number or 0) < torch.cuda.device_count()
    )
    if not there:
        raise InputError(f"device={name}: not on this machine; use auto, cpu, cuda or cuda:N")
    if find_spec("triton") is None:
        raise InputError(f"device={name}: needs Triton, which PyTorch for this system lacks; use cpu")
    return name
