"""What the scheduler writes down: a row for each request that is over, and one for each step.

It copies what is known and computes no metric.
"""

from __future__ import annotations

from replay.executors.interface import CostModel
from replay.records import Records
from replay.request import Request
from replay.scheduler.flight import Flight
from replay.scheduler.modes import Mode


def write_request(records: Records, request: Request, output_tokens: int, cost: CostModel, mode: Mode) -> None:
    """The row of a request that is over, whether or not it ever reached the scheduler."""
    chunk = None if mode.whole else mode.budget
    complete = request.status == "completed"
    answer = request.generated if complete else output_tokens  # a token may have ended it before the length to force
    records.requests.append(
        row=request.row,
        request_id=request.request_id,
        user=request.user,
        session=request.session,
        turn=request.turn,
        priority=request.priority,
        urgency=request.urgency,
        slo=request.slo,
        deadline=request.deadline,
        prompt_tokens=request.prompt_tokens,
        output_tokens=output_tokens,
        max_tokens=request.max_tokens,
        arrival=request.arrival,
        due=request.due,
        submitted=request.submitted,
        lag=request.lag,
        admitted=request.admitted,
        first_token=request.token_times[0] if request.token_times else None,
        last_token=request.token_times[-1] if complete else None,
        finished=request.finished,
        ended=request.ended,
        status=request.status,
        reason=request.reason,
        generated_tokens=request.generated,
        evictions=request.evictions,
        swaps=request.swaps,
        cached_tokens=request.cached_tokens,
        recomputed_tokens=request.recomputed_tokens,
        alone=cost.alone(request.prompt_tokens, answer, chunk),
        token_times=request.token_times,
    )


def write_step(records: Records, flight: Flight, start: float, launched: float, end: float) -> None:
    """The row of a step that was handed over at `launched` and was back at `end`; it did not begin before `start`."""
    step, batch = flight.step, flight.batch
    records.steps.append(
        step=step.number,
        start=start,
        launched=max(launched, start),
        end=end,
        planning=launched - step.now,
        waiting=flight.waiting,
        running=len(flight.residents),
        scheduled=len(batch.shares),
        prefill_tokens=batch.prefill_tokens,
        decodes=batch.decodes,
        padding_tokens=batch.padding_tokens,
        context_tokens=batch.context_tokens,
        attention_pairs=batch.pairs,
        new_tokens=sum(share.samples for share in batch.shares),
        admitted=len(step.admitted),
        evicted=step.evictions,
        swapped_out=len(batch.swap_out),
        swapped_in=len(batch.swap_in),
        slots=step.size,
        used_blocks=flight.used_blocks,
        bound=flight.bound,
    )
