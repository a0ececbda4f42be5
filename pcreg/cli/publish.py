"""Publish the weights of a training in half precision, with a card that describes them.

    pcreg publish outputs/train/simulated weights/mine --measured outputs/evaluate/...

Writes weights/mine.safetensors and weights/mine.md. Exit status: 0 done, 2 bad input.
"""

import hashlib
from importlib.resources import files
from pathlib import Path

from jinja2 import Template
from omegaconf import OmegaConf

from pcreg.cli import exit_status
from pcreg.cli.options import parser_of
from pcreg.models.weights import fingerprint, load_weights, save_weights
from pcreg.runtime.errors import InputError
from pcreg.runtime.files import replacing, write_text


def main(arguments: list[str]) -> int:
    """Run the command line and return its exit status."""
    parser = parser_of("publish", __doc__)
    parser.add_argument("training", type=Path, help="folder that `pcreg train` wrote")
    parser.add_argument("name", type=Path, help="path of both files, without suffix")
    which = "weights to publish; mixed: interpolated by a fine-tuning (default: best)"
    parser.add_argument("--which", default="best", choices=["best", "last", "mixed"], help=which)
    parser.add_argument("--data", help="training data and their licence, in words")
    parser.add_argument("--measured", type=Path, nargs="*", default=[], help="folders of `pcreg evaluate`")
    options = parser.parse_args(arguments)
    return exit_status.status(lambda: _publish(**vars(options)))


def _publish(training: Path, name: Path, which: str, data: str | None, measured: list[Path]) -> None:
    """Write the weights and their card."""
    if not name.name:
        raise InputError(f"{name}: is a folder; name both files, without suffix")
    text = _read(training / "config.yaml", "name a folder that `pcreg train` wrote")
    source = training / f"{which}.safetensors"
    if not source.is_file():
        remedy = "continue it with validate.every=1, or for mixed weights with interpolation=0.5"
        raise InputError(f"{source}: the training has not written these weights; {remedy}")
    trained = load_weights(source)
    settings = OmegaConf.create(text)
    record = OmegaConf.select(settings, "batches.record.path")
    if not data and not str(record).startswith("pcreg.datasets.simulated."):
        raise InputError("say with --data what these weights were trained on, and under which licence")
    tables = [_read(folder / "table.md", "name folders that `pcreg evaluate` wrote") for folder in measured]
    card = Template(files("pcreg.cli").joinpath("card.md").read_text("utf-8"), keep_trailing_newline=True)
    path = name.with_name(f"{name.name.removesuffix('.safetensors')}.safetensors")
    with replacing(path) as temporary:
        save_weights(temporary, trained, half=True)
        rounded = load_weights(temporary)
        before, checksum = fingerprint(trained), fingerprint(rounded)
        for folder, table in zip(measured, tables, strict=True):
            if before not in table and checksum not in table:
                raise InputError(f"{folder}: has figures of other weights than {source}; leave it out")
        words = card.render(
            weights=path.name,
            parameters=sum(parameter.numel() for parameter in rounded.parameters()),
            architecture=rounded.architecture,
            data=data,
            record=record,
            sha_256=hashlib.sha256(temporary.read_bytes()).hexdigest(),
            checksum=checksum,
            before=before,
            measured="\n\n".join(tables).strip() or "Nothing yet.",
            name=settings.name,
            which=which,
            start=OmegaConf.select(settings, "weights"),
            settings=text.strip(),
        )
    write_text(path.with_suffix(".md"), words)
    print(f"written: {path}, {path.with_suffix('.md')}")


def _read(path: Path, remedy: str) -> str:
    if not path.is_file():
        raise InputError(f"{path}: missing; {remedy}")
    return path.read_text("utf-8")
