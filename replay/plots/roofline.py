"""The roofline: what each arm computed for each byte it had to move, how fast, and how fast the machine could have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from replay.ceilings import Ceilings
from replay.metrics.arms import Arm
from replay.metrics.notation import scaled
from replay.plots.canvas import DASHES, FAINT, INK, figure, legend, mark, scale
from replay.plots.plane import fills
from replay.plots.registry import plots
from replay.plots.view import INVALID, View

GIGA = 1e9


@plots.register("roofline")
def roofline(view: View) -> Figure | None:
    """One mark for each arm, under the roof of its device. None where no ceilings were measured."""
    roofs = {cell.ceilings.key: cell.ceilings for arm in view.arms for cell in arm.cells if cell.ceilings is not None}
    places = {arm: place for arm in view.arms if (place := _place(view, arm)) is not None}
    if not roofs or not places:
        return None
    made = figure("Arithmetic for each byte moved, under the machine's roof (higher is better)", 9.0, 5.6)
    axes = made.subplots()
    _frame(axes, list(roofs.values()), list(places.values()))
    for number, roof in enumerate(roofs.values()):
        _roof(axes, roof, DASHES[number % len(DASHES)])
    filled = fills(view)
    for arm, (intensity, rate) in places.items():
        colour = view.colour(arm.policy) if arm.valid else INVALID
        style: dict[str, Any] = {"marker": view.marker(arm.policy), "fillstyle": filled[arm.mode], "color": colour}
        axes.plot(intensity, rate, markersize=8, alpha=0.85, **style)
    handles = [
        *view.legend(markersize=8),
        *(mark(mode, marker="o", markersize=8, fillstyle=fill) for mode, fill in filled.items()),
        *(
            mark(f"roof: {roof.label}", linestyle="-", marker="", dashes=DASHES[number % len(DASHES)])
            for number, roof in enumerate(roofs.values())
        ),
    ]
    remark = view.remark()
    legend(made, handles, 4, "colour and shape: the policy; fill: the mode" + (f"\n{remark}" if remark else ""))
    return made


def _place(view: View, arm: Arm) -> tuple[float, float] | None:
    """FLOP a byte and GFLOP/s of an arm; None where its work is not counted."""
    flops, traffic = (view.values.value(arm, name, "value") for name in ("flop_rate", "byte_rate"))
    return None if not flops or not traffic else (flops / traffic, flops / GIGA)


def _frame(axes: Axes, roofs: Sequence[Ceilings], places: Sequence[tuple[float, float]]) -> None:
    """Logarithmic axes around all marks and around each roof's ridge, so that both its slopes show."""
    ridges = [roof.arithmetic / roof.bandwidth for roof in roofs]
    across = [
        *(intensity for intensity, _ in places),
        *(ridge / 8 for ridge in ridges),
        *(ridge * 4 for ridge in ridges),
    ]
    heights = [roof.arithmetic / GIGA for roof in roofs]
    up = [*(rate for _, rate in places), *(height / 8 for height in heights), *heights]
    scale(axes, "x", across, "model FLOP for each byte that must be moved")
    scale(axes, "y", up, "model GFLOP/s while a step is computed")


def _roof(axes: Axes, roof: Ceilings, dashes: tuple[float, ...]) -> None:
    """Bandwidth up to the ridge, arithmetic beyond it, each with its ceiling written along it."""
    low, high = axes.get_xlim()
    ridge, top = roof.arithmetic / roof.bandwidth, roof.arithmetic / GIGA
    (line,) = axes.plot([low, ridge, high], [roof.bandwidth * low / GIGA, top, top], color=INK, linewidth=1.3)
    line.set_dashes(dashes)
    middle = (ridge * max(low, ridge / 8)) ** 0.5
    texts = [(middle, scaled(roof.bandwidth, "B/s"), "right"), (ridge, scaled(roof.arithmetic, "FLOP/s"), "left")]
    for x, text, side in texts:
        at = (x, min(roof.bandwidth * x, roof.arithmetic) / GIGA)
        shift = (-6 if side == "right" else 6, 5)
        axes.annotate(text, at, xytext=shift, textcoords="offset points", ha=side, size=8, color=FAINT)
