"""The command `pcreg`, which runs a verb."""

import sys
from difflib import get_close_matches
from importlib import import_module

from pcreg.cli import exit_status
from pcreg.runtime import VERSION
from pcreg.runtime.errors import InputError
from pcreg.runtime.extras import require

# Each verb is a module of this package, imported when it runs: `register` starts without PyTorch.
VERBS = {
    "demo": "register two scans of a simulated room, as an example",
    "register": "register two point clouds, or the pairs of a list",
    "verify": "judge a transform that comes from elsewhere, such as ICP",
    "map": "put many scans together, in any order",
    "locate": "find scans in a map",
    "warmup": "compile the kernels for a GPU beforehand",
    "evaluate": "measure a descriptor and an estimator on the pairs of a data set",
    "train": "train descriptors on pairs of clouds",
    "publish": "publish the weights of a training, with a card",
}
EXTRAS = {"warmup": "gpu", "evaluate": "evaluate", "train": "train", "publish": "train"}
LISTED = "\n".join(f"  {verb:10}{what}" for verb, what in VERBS.items())
HELP = f"""\
usage: pcreg VERB ...

Point cloud registration with learned descriptors on native points.

{LISTED}

pcreg VERB --help explains a verb, pcreg --version says which version this is."""


def main(arguments: list[str] | None = None) -> int:
    """Run `pcreg` with these arguments, by default those of the process; returns its exit status."""
    verb, *rest = (sys.argv[1:] if arguments is None else arguments) or [""]
    if verb not in VERBS:
        return exit_status.status(lambda: _about(verb))
    if lacking := exit_status.status(lambda: _load(verb)):
        return lacking
    return import_module(f"pcreg.cli.{verb}").main(rest)


def _load(verb: str) -> None:
    """Import what a verb needs."""
    if verb in EXTRAS:
        require(EXTRAS[verb], f"pcreg {verb}")
    import_module(f"pcreg.cli.{verb}")


def _about(option: str) -> None:
    """Print the help or the version; InputError for any other word that is not a verb."""
    if option in ("-h", "--help"):
        print(HELP)
    elif option == "--version":
        print(f"pcreg {VERSION}")
    elif not option:
        raise InputError(f"a verb is needed, one of {', '.join(VERBS)}; pcreg --help explains them")
    else:
        near = get_close_matches(option, VERBS, 1)
        remedy = f"did you mean {near[0]}?" if near else f"use one of {', '.join(VERBS)}"
        raise InputError(f"{option} is not a verb of pcreg; {remedy}")
