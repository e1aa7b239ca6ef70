"""How much of the machine each arm used, and what its tokens cost: the table, and what it is counted against."""

from __future__ import annotations

from replay.metrics.arms import Arm
from replay.metrics.notation import number, percent, price, scaled
from replay.report.findings import Findings
from replay.report.tables import Column, arm_table, defined

GIB = 2**30


def _gibibytes(value: float | None) -> str:
    return number(None if value is None else value / GIB)


def _flops(value: float | None) -> str:
    return scaled(value, "FLOP/s")


def _bytes(value: float | None) -> str:
    return scaled(value, "B/s")


COLUMNS = [
    Column("MFU, busy", "mfu_busy", "value", percent),
    Column("MFU, whole run", "mfu_run", "value", percent),
    Column("MFU, step p50", "mfu", "p50", percent),
    Column("MBU, busy", "mbu_busy", "value", percent),
    Column("MBU, whole run", "mbu_run", "value", percent),
    Column("MBU, step p50", "mbu", "p50", percent),
    Column("model FLOP/s, busy", "flop_rate", "value", _flops),
    Column("fewest bytes/s, busy", "byte_rate", "value", _bytes),
    Column("device memory, GiB", "device_memory", "value", _gibibytes),
    Column("reserved, GiB", "device_memory_reserved", "value", _gibibytes),
    Column("GPU use, mean", "gpu_use", "value", percent),
    Column("GPU use, max", "gpu_use_max", "value", percent),
    Column("cost of 1M output tokens", "cost_per_million_tokens", "value", price),
]


def utilisation(findings: Findings, trace: str) -> list[str]:
    """The parts of this section; none where nothing of it is known, as of a simulated engine without a price."""
    found, values = findings.of(trace), findings.values
    columns = defined(COLUMNS, found, values)
    notes = _notes(found, {column.metric for column in columns})
    if not columns and not notes:
        return []
    table = [arm_table(columns, found, values, mark=False)] if columns else []
    return ["### Utilisation", "\n".join(f"- {note}" for note in notes), *table]


def _notes(found: list[Arm], shown: set[str]) -> list[str]:
    """What the figures are held against, and why some are missing."""
    cells = [cell for arm in found for cell in arm.cells]
    measured = list(dict.fromkeys(cell.ceilings.key for cell in cells if cell.ceilings is not None))
    notes = []
    for key in measured:
        ceilings = next(cell.ceilings for cell in cells if cell.ceilings is not None and cell.ceilings.key == key)
        notes.append(
            f"ceilings of {ceilings.label}: {scaled(ceilings.arithmetic, 'FLOP/s')} ({ceilings.how['arithmetic']}); "
            f"{scaled(ceilings.read, 'B/s')} read ({ceilings.how['read']}); {scaled(ceilings.copy, 'B/s')} copied "
            f"({ceilings.how['copy']}); by `replay probe`, {ceilings.measured}, torch {ceilings.versions.get('torch')}"
        )
    if "mfu_busy" in shown:
        notes.append(
            "MFU is model FLOP of tokens of requests, MBU the fewest bytes that the steps must move, each as a share "
            "of its ceiling; busy: of the seconds in which a step was being computed. Weights that fit into a cache "
            "may be read faster than memory gives them, so that MBU may pass 100 %"
        )
    real = [cell for cell in cells if not cell.simulated]
    if any(cell.ceilings is None for cell in real):
        whose = "no ceilings were measured" if not measured else "not for every engine were ceilings measured"
        notes.append(
            f"{whose} before this run: run `replay probe` once, with the engine's own device "
            "and threads, and later runs tell how much of them is used"
        )
    if any(cell.work is None for cell in real):
        notes.append("the FLOP of a model whose layers are not of the plain kind (experts, say) are not counted")
    sources = dict.fromkeys(str(cell.device_use["memory_source"]) for cell in cells if cell.device_use)
    if "device_memory" in shown:
        notes.append(f"device memory: {', '.join(sources)}")
    prices = dict.fromkeys(cell.price_per_hour for cell in cells if cell.price_per_hour is not None)
    if prices:
        simulated = "; simulated seconds" if all(cell.simulated for cell in cells) else ""
        told = ", ".join(price(each) for each in prices)
        notes.append(
            f"cost: of the whole run, at {told} an hour, for each million tokens of completed answers{simulated}"
        )
    return notes
