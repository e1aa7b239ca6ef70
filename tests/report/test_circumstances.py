"""What of the trace and its load explains the figures: overload, policies that are the same, fairness, prefixes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from runs import MODES, cell_entry, request_row, simulated_run, write_manifest, write_tables

from replay.contract.simulation import request, simulate
from replay.report import write_report


def verdict(folder: Path) -> str:
    return "\n".join(write_report(folder, plots=False).verdict)


def cells(folder: Path, served: float, policies: tuple[str, ...] = ("fifo", "sjf"), **facts: Any) -> Path:
    """Cells of 41 requests, ten a second over four seconds, served in their order at `served` a second."""
    for policy in policies:
        rows = []
        for row in range(41):
            admitted = max(row / 10, row / served)
            times = [admitted + 0.1]
            rows.append(request_row(row, arrival=row / 10, admitted=admitted, token_times=times, alone=0.1, **facts))
        write_tables(folder / "cells" / f"continuous-{policy}", rows)
    return write_manifest(folder, [cell_entry(f"continuous-{policy}") for policy in policies], rows=41)


def test_an_overloaded_mode_is_named_with_its_drain(tmp_path: Path) -> None:
    # 40 intervals at 5 a second take 8 s, and the last arrival was at 4 s
    assert (
        "Overloaded: requests come faster than they are served in continuous (the queue drained for 4.00 s after the "
        "last arrival), so latencies there measure how long the trace is; continuous carries about 0.5 of this load: "
        "try `loads = [0.5, 1.0]`."
    ) in verdict(cells(tmp_path, served=5.0))


def test_a_mode_that_keeps_up_or_nearly_so_is_not(tmp_path: Path) -> None:
    assert "come faster" not in verdict(cells(tmp_path / "kept", served=10.0))
    assert "come faster" not in verdict(cells(tmp_path / "nearly", served=9.0))  # 0.44 s of 4 s


def test_a_batch_that_waits_to_be_filled_is_no_overload(tmp_path: Path) -> None:
    # 12 of 40 arrive at once and wait 2 s for a batch of 16 that the end of the trace lets go
    rows = [request_row(row, arrival=row / 10, admitted=row / 10, token_times=[row / 10 + 0.1]) for row in range(28)]
    rows += [request_row(row, arrival=row / 10, admitted=6.0, token_times=[6.1]) for row in range(28, 40)]
    for name, slots, overloaded in (("waits", 16, False), ("late", 8, True)):
        folder = tmp_path / name
        write_tables(folder / "cells" / "static-fifo", rows)
        run = write_manifest(folder, [cell_entry("static-fifo", slots=slots)], rows=40)
        assert ("Overloaded: requests come faster than they are served in static" in verdict(run)) is overloaded


def test_it_must_be_so_under_every_policy(tmp_path: Path) -> None:
    folder = cells(tmp_path, served=5.0)
    quick = cells(tmp_path / "quick", served=10.0, policies=("sjf",))
    (folder / "cells" / "continuous-sjf" / "requests.parquet").write_bytes(
        (quick / "cells" / "continuous-sjf" / "requests.parquet").read_bytes()
    )
    assert "come faster" not in verdict(folder)


def test_policies_that_have_nothing_to_go_by_are_fifo(tmp_path: Path) -> None:
    policies = ("fifo", "priority", "hybrid", "fair")
    told = verdict(cells(tmp_path / "none", served=10.0, policies=policies, user="ana"))
    assert "All requests of this trace are equally urgent, so priority and hybrid are fifo here." in told
    assert "This trace has one user or none, so fair is fifo here." in told
    folder = simulated_run(tmp_path / "some", policies=policies, modes={"continuous": MODES["continuous"]}, count=20)
    told = verdict(folder)
    assert "equally urgent" not in told
    assert "one user or none" not in told


def test_the_fairness_sentence_names_the_best_and_the_worst(tmp_path: Path) -> None:
    # fifo: both users at a slowdown of 2; fair: 1 and 3, and so (1 + 3)^2 / (2 * (1 + 9)) = 0.8
    for policy, slowdowns in (("fifo", (2, 2)), ("fair", (1, 3))):
        rows = []
        for row in range(40):
            end = row + 0.1 * slowdowns[row % 2]
            rows.append(
                request_row(row, arrival=row, admitted=end - 0.1, token_times=[end], user="ab"[row % 2], alone=0.1)
            )
        write_tables(tmp_path / "cells" / f"continuous-{policy}", rows)
    folder = write_manifest(tmp_path, [cell_entry("continuous-fifo"), cell_entry("continuous-fair")], rows=40)
    assert (
        "Fairness in continuous: Jain's index over users' slowdowns 1.00 with fifo, and 0.80 with fair; "
        "longest wait 100 ms with fifo, and 200 ms with fair "
        "(`fair` shares slots by count; the index is over slowdown)." in verdict(folder)
    )


def test_where_even_service_means_uneven_slowdowns_the_fairness_sentence_says_so(tmp_path: Path) -> None:
    # One slot; ana asks for four times as much as bob. First come, first served slows both down alike.
    due = [row / 100 for row in range(50)]
    users = ["bob" if row % 5 == 0 else "ana" for row in range(50)]
    for policy in ("fifo", "vtc"):
        replayed = simulate(
            [request(row, due[row], 8, user=users[row]) for row in range(50)], [4] * 50, policy=policy, max_running=1
        )
        rows = replayed.requests.with_columns(alone=0.04).to_dicts()
        write_tables(tmp_path / "cells" / f"continuous-{policy}", rows)
    folder = write_manifest(tmp_path, [cell_entry("continuous-fifo"), cell_entry("continuous-vtc")], rows=50)
    (told,) = [line for line in verdict(folder).splitlines() if "Fairness in continuous" in line]
    assert "Jain's index over users' slowdowns 1.00 with fifo, and 0.68 with vtc; " in told
    found = re.search(r"; service of two users apart by at most ([\d.]+) with vtc, and ([\d.]+) with fifo; ", told)
    assert found is not None, told
    assert float(found[1]) < 48 < float(found[2])  # VTC's bound: 2 U, U = 2 * (8 + 4)
    assert told.endswith("(users who get as much are not slowed down as much: whoever asks for more waits longer).")


def test_traces_with_prefixes_are_said_to_be_computed_in_full(tmp_path: Path) -> None:
    sentence = "no prefix cache: every prompt is computed in full"
    folder = cells(tmp_path, served=10.0)
    write_report(folder, plots=False)
    assert sentence not in (folder / "comparison.md").read_text()
    names = [cell_entry("continuous-fifo"), cell_entry("continuous-sjf")]
    write_manifest(folder, names, traces=[{"name": "sample", "rows": 41, "block_size": 16}])
    write_report(folder, plots=False)
    assert f"- {sentence}\n" in (folder / "comparison.md").read_text()


def test_the_terminal_table_says_its_unit_and_stays_readable(tmp_path: Path) -> None:
    write_tables(tmp_path / "cells" / "continuous-fifo", [request_row(0, token_times=[1_234.5])])
    table = write_report(write_manifest(tmp_path, [cell_entry("continuous-fifo")], rows=1), plots=False).table
    assert table.startswith("Milliseconds, unless said otherwise.\nmode ")
    assert "1,234 s" in table


def test_the_first_line_is_the_answer(tmp_path: Path) -> None:
    told = write_report(simulated_run(tmp_path, policies=("fifo", "sjf"), count=60), plots=False).verdict
    assert told[0].startswith("continuous serves best here: mean TTFT ")
    assert re.search(r" in static \(.* less; 95 % interval .*\), and 1\.\d+ times its output tokens/s\.$", told[0])
    assert told[0].endswith(" times its output tokens/s.")
    assert told[1].startswith("Simulated:")
    assert "intervals are about other requests like these" in told[-1]


def test_modes_that_cannot_be_told_apart_are_said_to_be_so(tmp_path: Path) -> None:
    for mode in ("static", "continuous"):
        rows = [request_row(row, arrival=float(row), token_times=[row + 0.1]) for row in range(40)]
        write_tables(tmp_path / "cells" / f"{mode}-fifo", rows)
    told = verdict(write_manifest(tmp_path, [cell_entry("static-fifo"), cell_entry("continuous-fifo")], rows=40))
    assert told.startswith("No mode can be told from another here.")
    assert "continuous against static (under fifo): no difference seen on average." in told
