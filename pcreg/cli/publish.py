"""Publish the weights of a training: half the size, and a card.

    pcreg publish outputs/train/indoor weights/indoor --measured outputs/evaluate/...

Writes weights/indoor.safetensors and weights/indoor.md. Exit status: 0, or 2 on bad input (one sentence
on stderr, nothing written).
"""

import argparse
from pathlib import Path

from pcreg.cli import exit_status
from pcreg.models.weights import load_weights, save_weights
from pcreg.runtime.files import replacing
from pcreg.training.model_card import card


def main(arguments: list[str] | None = None, program: str = "pcreg publish") -> int:
    """Run the command line and return its exit status."""
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(program, description=__doc__, formatter_class=formatter)
    parser.add_argument("training", type=Path, help="folder that `pcreg train` wrote")
    parser.add_argument("name", type=Path, help="of the files, without suffix")
    parser.add_argument("--which", default="best", choices=["best", "last"], help="(default: best)")
    parser.add_argument("--data", help="what they were trained on and under which licence, in words")
    parser.add_argument("--measured", type=Path, nargs="*", default=[], help="folders of `pcreg evaluate`")
    options = parser.parse_args(arguments)
    return exit_status.status(
        lambda: publish(options.training, options.name, options.which, options.data, options.measured)
    )


def publish(training: Path, name: Path, which: str, data: str | None, measured: list[Path]) -> int:
    """Write both files, or none; returns 0."""
    trained = load_weights(training / f"{which}.safetensors")
    with replacing(name.with_suffix(".safetensors")) as temporary:
        save_weights(temporary, trained, half=True)
        rounded = load_weights(temporary)
        text = card(temporary, rounded, training, data, measured)
        with replacing(name.with_suffix(".md")) as page:
            page.write_text(text.replace(temporary.name, f"{name.name}.safetensors"))
    return 0
