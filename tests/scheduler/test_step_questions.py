"""What a step answers before anything is done: room to join, blocks, budget; and what it notes when a rule says no."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from hypothesis import given, settings

from replay.contract.cases import COST, Case, cases
from replay.contract.simulation import request, simulate
from replay.scheduler import Ordered, PerUser, Policy, Request, Step


@dataclass
class Asking(Policy):
    """Runs everybody as far as it goes, at most `most` tokens each, and writes down what the step said before."""

    most: int | None = None
    answers: list[tuple[object, ...]] = field(default_factory=list)

    def schedule(self, step: Step) -> None:
        for running in step.running:
            step.run(running, self.most)
        for waiting in list(step.waiting):
            asked = step.affords(waiting), step.blocks_to_join(waiting), step.new_blocks(waiting), step.free_blocks
            self.answers.append((waiting.row, *asked, step.run(waiting, self.most)))
        for running in step.running:
            assert step.holds(running) == step.freed_by(running), "nothing is shared here"


def test_room_is_kept_for_prompts_that_are_not_computed_yet() -> None:
    # 10 blocks of 4. The first (24 tokens, 6 blocks) computes 8 in a step and holds 2 blocks; it lacks 4 of its prompt,
    # and takes one to grow. The second (9 tokens, 3 blocks) would fit into the 8 free ones if only they were counted.
    policy = Asking(most=8)
    replayed = simulate(
        [request(0, 0.0, 24), request(1, 0.0, 9)], [2, 2], policy=policy, blocks=10, block_size=4, token_budget=16
    )
    assert policy.answers[0] == (0, True, 6, 4, 10, True)  # its budget would let it take 16 tokens, 4 blocks
    assert policy.answers[1] == (1, True, 3 + 1 + 4, 2, 8, True)
    assert replayed.column("admitted") == [0.0, 0.0]
    tight = Asking(most=8)
    replayed = simulate(
        [request(0, 0.0, 24), request(1, 0.0, 9)], [2, 2], policy=tight, blocks=9, block_size=4, token_budget=16
    )
    assert tight.answers[1] == (1, True, 8, 2, 7, False)  # 8 blocks are wanted, 7 are free
    assert replayed.steps["bound"][0] == "blocks"
    assert replayed.column("admitted")[1] > 0


def test_a_rule_of_the_policys_own_is_what_binds_a_step() -> None:
    @dataclass
    class Strict(Ordered):
        """One at a time, whatever fits."""

        def admit(self, request: Request, step: Step) -> bool:
            return step.withhold() if step.residents else super().admit(request, step)

    replayed = simulate([request(row) for row in range(3)], [2, 2, 2], policy=Strict())
    assert replayed.steps["bound"].to_list() == ["policy"] * 4 + ["nothing"] * 2
    assert replayed.steps["running"].max() == 1


def test_whom_an_order_leaves_out_is_held_back_by_the_policy() -> None:
    @dataclass
    class Odd(Ordered):
        """Rows with odd numbers, while there are any."""

        def order(self, step: Step) -> Iterator[Request]:
            rows = sorted(step.waiting, key=lambda one: one.row)
            yield from [one for one in rows if one.row % 2] or rows

    replayed = simulate([request(row) for row in range(3)], [2, 2, 2], policy=Odd())
    assert replayed.column("admitted") == [0.010, 0.0, 0.010]
    assert replayed.steps["bound"].to_list() == ["policy", "nothing", "nothing"]


def test_a_chunk_is_the_most_that_a_request_is_given() -> None:
    @dataclass
    class Small(Ordered):
        """Prompts in parts of three tokens."""

        def chunk(self, request: Request, step: Step) -> int | None:
            return 3 if request.prefilling else None

    replayed = simulate([request(0, 0.0, 7), request(1, 0.0, 2)], [2, 4], policy=Small())
    assert [[share.tokens for share in batch.shares] for batch in replayed.batches] == [[3, 2], [1, 3], [1, 1], [1, 1]]


@dataclass
class Counted(PerUser):
    """The user who was served least is next; counts how often it is asked."""

    served: Counter[str | None] = field(default_factory=Counter)
    asked: int = 0

    def user_key(self, user: str | None, step: Step) -> float:
        self.asked += 1
        return self.served[user]

    def on_admit(self, request: Request, step: Step) -> None:
        self.served[request.user] += 1


def test_users_of_whom_nothing_happens_are_not_looked_at_again() -> None:
    policy = Counted()
    rows = [request(row, user=f"user {row // 2}") for row in range(400)]
    simulate(rows, [1] * 400, policy=policy, max_running=1)
    # 200 once at the start, and one or two in each of 400 steps: not 200 in each.
    assert policy.asked < 200 + 3 * 400


@dataclass
class Plain(PerUser):
    """The same by looking at every waiting request in every step."""

    served: Counter[str | None] = field(default_factory=Counter)

    def user_key(self, user: str | None, step: Step) -> float:
        return self.served[user]

    def on_admit(self, request: Request, step: Step) -> None:
        self.served[request.user] += 1

    def order(self, step: Step) -> Iterator[Request]:
        passed: set[int] = set()
        while left := [one for one in step.waiting if one.row not in passed]:
            heads: dict[str | None, Request] = {}
            for one in sorted(left, key=lambda one: (one.due, one.row)):
                heads.setdefault(one.user, one)
            first = min(heads.values(), key=lambda one: (self.user_key(one.user, step), one.due, one.row))
            passed.add(first.row)
            yield first


@settings(max_examples=150)
@given(case=cases())
def test_looking_at_few_users_finds_whom_looking_at_all_finds(case: Case) -> None:
    for bypass in (0, 2):
        found = []
        for kind in (Counted, Plain):
            policy = kind()
            policy.bypass = bypass  # type: ignore[misc]
            found.append(
                simulate(
                    case.rows(), case.outputs, policy=policy, blocks=case.blocks, block_size=case.block_size,
                    cost=COST, limits=case.limits, max_running=3, token_budget=7,
                )
            )  # fmt: skip
        for table in ("requests", "steps", "spans"):
            assert getattr(found[0], table).equals(getattr(found[1], table))
