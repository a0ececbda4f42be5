"""One HTML file from a template of Jinja, in which every value is escaped."""

from base64 import b64encode
from importlib.resources import files
from pathlib import Path
from typing import Any

from pcreg.runtime.files import replacing


def write_page(path: str | Path, package: str, template: str, **values: Any) -> None:
    """Write a template of a package with values, atomically; `| base64` embeds bytes."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    environment = Environment(
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        loader=FunctionLoader(lambda name: (files(package) / name).read_text(encoding="utf-8")),
    )
    environment.filters["base64"] = lambda content: b64encode(content).decode()
    page = environment.get_template(template).render(values)
    with replacing(path) as temporary:
        temporary.write_text(page, encoding="utf-8", errors="surrogateescape")
