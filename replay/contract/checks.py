"""What holds of every replay, whatever the trace, the policy, the mode and the engine: at each step, and at the end.

Each check says in a sentence what was expected. It does not know which trace was drawn beyond its lengths.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from replay.contract.expect import broken, expect
from replay.executors.interface import Batch, Share
from replay.replayer import Replayer
from replay.scheduler import Mode, Ordered, Policy
from replay.scheduler.state import State

if TYPE_CHECKING:
    from replay.contract.cases import Case
    from replay.contract.simulation import Replayed


def check_step(replayer: Replayer, batch: Batch) -> None:
    """What holds when a step is handed to the executor."""
    scheduler = replayer.scheduler
    state, mode = scheduler.state, scheduler.mode
    scheduler.check_integrity()
    shares = batch.shares
    rows = {share.request.row for share in shares}
    residents = len(state.resident)
    expect(shares, "a step computes something")
    expect(residents <= mode.slots, f"at most {mode.slots} requests are resident, not {residents}")
    expect(len(shares) <= mode.scheduled, f"at most {mode.scheduled} get tokens in a step, not {len(shares)}")
    expect(len(rows) == len(shares), "nobody gets tokens twice in a step")
    _check_decodes(scheduler.policy, state, rows, batch)
    tokens = sum(share.tokens for share in shares)
    if mode.budget is not None and tokens > mode.budget:
        expect(mode.whole, f"a step computes at most {mode.budget} tokens, not {tokens}")
        expect(len(shares) == 1, "only a prompt larger than the token budget may exceed it, and alone")
    for share in shares:
        _check_share(share, mode, state.pool.block_size)
    if mode.padded:
        _check_padding(state, rows, batch)


def _check_decodes(policy: Policy, state: State, rows: set[int], batch: Batch) -> None:
    """Where decodes come first, no prompt is computed while one that decodes is left out."""
    policy = getattr(policy, "watched", policy)
    if isinstance(policy, Ordered) and policy.decodes_first and any(share.prefill for share in batch.shares):
        for one in state.resident.values():
            paused = one.state == "running" and not one.prefilling and one.row not in rows
            expect(not paused, f"no prompt stops a running decode (`decodes_first`), as one does of row {one.row}")


def _check_share(share: Share, mode: Mode, block_size: int) -> None:
    request, end = share.request, share.start + share.tokens
    row = f"row {request.row}"
    expect(request.state == "running", f"{row} gets tokens, so it runs; it is {request.state}")
    expect(share.start == request.computed, f"{row} goes on at its token {request.computed}, not at {share.start}")
    expect(1 <= share.tokens <= request.todo, f"{row} gets 1 to {request.todo} tokens, not {share.tokens}")
    expect(share.samples == (end == request.context), f"{row} answers when all before it is computed, and only then")
    expect(len(share.blocks) * block_size >= end, f"{row} has blocks for its {end} tokens")
    expect(share.samples or not mode.whole, f"a prompt that is computed whole, that of {row}, ends in its step")


def _check_padding(state: State, rows: set[int], batch: Batch) -> None:
    running = {row for row, resident in state.resident.items() if resident.state == "running"}
    expect(running == rows, f"every row of a batch runs in every step: rows {sorted(running)}, not {sorted(rows)}")
    padding = batch.padding
    if padding is None:
        broken("a batch in static or dynamic mode is padded")
    expect(padding.rows == len(state.resident), "a padded batch has a row for every resident request")
    longest = max(share.start + share.tokens for share in batch.shares)
    expect(padding.context >= longest, f"a padded batch is as wide as its longest row: {longest} tokens")


def check_outcome(case: Case, replayed: Replayed, *, leave: bool = False) -> None:
    """What holds when a replay has ended; `leave`: clients went away."""
    requests, steps = replayed.requests.sort("row"), replayed.steps
    rows = requests["row"].to_list()
    expect(rows == list(range(len(case.outputs))), f"every request ends exactly once; these did: rows {rows}")
    starts, ends = steps["start"].to_list(), steps["end"].to_list()
    expect(all(start < end for start, end in zip(starts, ends, strict=True)), "a step takes time")
    expect(all(end <= start for end, start in zip(ends, starts[1:], strict=False)), "the clock never goes back")
    instants = set(ends)
    for row in requests.iter_rows(named=True):
        _check_request(row, case.outputs[row["row"]], instants, limited=leave or case.limited)
    capacity = case.blocks * case.block_size
    for place, (prompt, output, status) in enumerate(zip(case.prompts, case.outputs, requests["status"], strict=True)):
        fits = prompt + output <= capacity or status in ("rejected", "skipped")
        expect(fits, f"row {place} never fits into the pool of {capacity} tokens, so it is turned away")
    new, generated = sum(steps["new_tokens"]), sum(requests["generated_tokens"])
    expect(new == generated, f"the steps' {new} new tokens are the answers' {generated}")
    taken: dict[int, float] = {}
    for slot, start, end in replayed.spans.sort("start").select("slot", "start", "end").iter_rows():
        expect(taken.get(slot, 0.0) <= start, f"nobody shares a slot, as two do with slot {slot} at {start} s")
        taken[slot] = end
    own, computed = sum(replayed.spans["tokens"]), sum(steps["prefill_tokens"]) + sum(steps["decodes"])
    expect(own == computed, f"the spans' {own} tokens are the steps' {computed}")
    check_work(replayed)


def _check_request(row: dict[str, Any], output: int, instants: set[float], *, limited: bool) -> None:
    times, status, name = row["token_times"], row["status"], f"row {row['row']}"
    expect(times == sorted(set(times)), f"two tokens of {name} never come at once")
    expect(len(times) == row["generated_tokens"], f"each token of {name} has its instant")
    expect(instants.issuperset(times), f"the tokens of {name} come at the ends of steps")
    if status == "completed":
        expect(len(times) == output, f"{name} gets each of its {output} tokens exactly once; it got {len(times)}")
        stamps = [row[at] for at in ("due", "submitted", "admitted", "first_token", "last_token", "finished")]
        expect(stamps == sorted(stamps), f"{name} is due, comes, is admitted and answers in this order: {stamps}")
        expect(row["admitted"] < row["first_token"], f"the first token of {name} takes time")
        expect(row["finished"] == row["ended"], f"{name} ends when its answer is delivered")
        expect(row["lag"] == 0, "a virtual clock is never late")
    elif status == "rejected":
        expect(times == [] or row["evictions"], f"{name} is turned away, so it has no tokens")
        expect(row["reason"], f"{name} is turned away, and told why")
    else:
        ways = ("timed_out", "skipped", "cancelled") if limited else ()
        expect(status in ways, f"{name} is served, or turned away and told why; it is {status}")
        expect(row["finished"] is None, f"{name} was not delivered")


def check_work(replayed: Replayed) -> None:
    """Every token of work is a first computation or a recomputation, and every other one was found in a cache."""
    furthest = [0] * len(replayed.objects)
    again = [0] * len(replayed.objects)
    found: dict[int, int] = {}  # at the first admission
    for batch in replayed.batches:
        for share in batch.shares:
            row, end = share.request.row, share.start + share.tokens
            found.setdefault(row, share.start)
            again[row] += max(0, min(end, furthest[row]) - share.start)
            furthest[row] = max(end, furthest[row])
    rows = replayed.requests.sort("row")
    recomputed = rows["recomputed_tokens"].to_list()
    expect(recomputed == again, f"tokens computed again are counted, row by row: {again}, not {recomputed}")
    expect([one.furthest for one in replayed.objects] == furthest, "how far each request came is known")
    for row, cached in enumerate(rows["cached_tokens"]):
        expect(cached in (None, found.get(row)), f"a hit is counted once, at the first admission: row {row}")
        whole = cached is None or cached < replayed.objects[row].prompt_tokens
        expect(whole, f"the last token of a prompt is computed, though the cache holds it: row {row}")
    steps = replayed.steps
    lost = sum(rows["evictions"]) - sum(steps["evicted"])
    unserved = (rows["status"] != "completed").any()
    expect(lost == 0 or (lost > 0 and unserved), "the steps' evictions are those of the requests")
    expect((rows["swaps"] <= rows["evictions"]).all(), "a swap is an eviction")
    swapped_in, swapped_out = sum(steps["swapped_in"]), sum(steps["swapped_out"])
    expect(swapped_in <= swapped_out, f"no more blocks come back ({swapped_in}) than were swapped out ({swapped_out})")
    if not sum(rows["evictions"]):
        expect(sum(again) == 0, "without evictions nothing is computed again")


def check_empty(replayers: list[Replayer]) -> None:
    """When all is over, nobody holds a block."""
    for replayer in replayers:
        pool = replayer.scheduler.state.pool
        expect(pool.free_blocks == pool.blocks, f"every block comes back; {pool.blocks - pool.free_blocks} did not")
        expect(pool.host.free_blocks == pool.host.blocks, "every block of host memory comes back")
