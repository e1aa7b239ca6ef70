"""From the table to requests: seconds, urgencies, what is declared and what is hidden."""

from __future__ import annotations

from replay.traces.transforms import apply_transforms, parse_transforms
from replay.traces.workload import workload


def test_a_request_has_what_its_row_says_in_seconds(trace_of):
    trace = trace_of(
        metadata={"block_size": "16", "hash_scope": "session"},
        arrival_ms=[500.0, 1750.25],
        prompt_tokens=[20, 3],
        output_tokens=[7, 9],
        request_id=["a", "b"],
        user=["ada", None],
        session=["s", "s"],
        turn=[1, 2],
        think_time_ms=[None, 250],
        priority=[2, None],
        deadline_ms=[1500, None],
        slo=["chat", None],
        max_tokens=[8, None],
        prefix_hashes=[[4, 5], None],
        prompt=["hello", None],
        prompt_token_ids=[None, [1, 2, 3]],
    )
    load = workload(trace)
    first, second = load.requests
    assert (first.row, first.request_id, first.arrival, first.due) == (0, "a", 0.0, 0.0)
    assert (second.row, second.request_id, second.arrival, second.due) == (1, "b", 1.25025, 1.25025)
    assert (first.prompt_tokens, first.max_tokens, first.user, first.slo) == (20, 8, "ada", "chat")
    assert (first.session, first.turn, first.think_time, second.think_time) == ("s", 1, 0.0, 0.25)
    assert (first.priority, first.urgency, second.priority, second.urgency) == (2, 2, None, 0)
    assert (first.deadline, second.deadline, second.user) == (1.5, None, None)
    assert (first.prefix_hashes, second.prefix_hashes) == ((4, 5), ())
    assert (load.hash_block, load.hash_scope) == (16, "session")
    assert load.prompts == {0: "hello", 1: [1, 2, 3]}
    assert load.output_tokens == [7, 9]
    assert (first.state, first.generated, first.token_times) == ("coming", 0, [])


def test_what_is_not_declared_is_the_largest_output_after_the_transforms(trace_of):
    trace = trace_of(arrival_s=[0, 1, 2], output_tokens=[7, 90, 9])
    assert [request.max_tokens for request in workload(trace).requests] == [90, 90, 90]
    capped = apply_transforms(trace, parse_transforms([{"max_output": 20}, {"limit": 2}]))
    assert [request.max_tokens for request in workload(capped).requests] == [20, 20]


def test_smaller_numbers_may_be_the_urgent_ones(trace_of):
    trace = trace_of(arrival_s=[0.1, 0.2, 0.3, 0.4], priority=[5, 0, 3, None])
    assert [request.urgency for request in workload(trace, "larger-first").requests] == [5, 0, 3, 0]
    assert [request.urgency for request in workload(trace, "smaller-first").requests] == [-5, 0, -3, 0]


def test_seconds_are_the_nearest_floats(trace_of):
    trace = trace_of(arrival_ns=[0, 10_535_000_000, 27_482_000_000, 123_456_789_123_456_789])
    assert [request.due for request in workload(trace).requests] == [0.0, 10.535, 27.482, 123456789.123456789]


def test_each_workload_has_requests_of_its_own(trace_of):
    trace = trace_of(arrival_s=[0])
    first, second = workload(trace), workload(trace)
    first.requests[0].token_times.append(1.0)
    first.requests[0].memory["seen"] = True
    assert (second.requests[0].token_times, second.requests[0].memory) == ([], {})
