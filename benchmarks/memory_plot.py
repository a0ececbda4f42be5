"""A log-log plot of the rows of section `scale`: peak memory and time against the number of points."""

from pathlib import Path

import torch

from pcreg.runtime.files import replacing

COLORS = {"operator": "#5b8c5a", "ResUNet": "#2b5f9e", "ResNet": "#c8702a"}
NAMES = {"operator": "one operator, 64 to 64", "ResUNet": "ResUNet", "ResNet": "ResNet, encoder alone"}
STYLES = {"forward": ":", "training": "-", "checkpointed": "--"}  # by mode


def plot(rows: list[dict], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.lines import Line2D

    figure, (memory, time) = pyplot.subplots(1, 2, figsize=(12, 4.4), layout="constrained")
    for model, mode in dict.fromkeys((row["model"], row["mode"]) for row in rows):
        line = [row for row in rows if (row["model"], row["mode"]) == (model, mode)]
        look = {"color": COLORS[model], "linestyle": STYLES[mode], "marker": "o", "markersize": 3.5}
        points = [row["points"] for row in line]
        if line[0]["peak MiB"] is not None:
            memory.plot(points, [row["peak MiB"] / 1024 for row in line], **look)
        time.plot(points, [(row["index"] + row["ms"]) / 1000 for row in line], **look)
    if torch.cuda.is_available():
        total = torch.cuda.get_device_properties(0).total_memory / 2**30
        memory.axhline(total, color="0.5", linewidth=0.8)
        memory.text(0.02, total * 1.08, f"{total:.0f} GiB on the device", color="0.4", fontsize=8,
                    transform=memory.get_yaxis_transform())  # fmt: skip
    memory.set_ylabel("peak memory (GiB)")
    time.set_ylabel("time, pyramid included (s)")
    for axes in (memory, time):
        axes.set(xscale="log", yscale="log", xlabel="points")
        axes.grid(True, which="major", color="0.9")
        axes.spines[["top", "right"]].set_visible(False)
    present = dict.fromkeys(row["model"] for row in rows)
    handles = [Line2D([], [], color=COLORS[model], label=NAMES[model]) for model in present]
    handles += [Line2D([], [], color="0.3", linestyle=style, label=mode) for mode, style in STYLES.items()]
    figure.legend(handles=handles, frameon=False, fontsize=9, loc="outside right center")
    with replacing(path) as temporary:
        figure.savefig(temporary, dpi=160)
    pyplot.close(figure)
