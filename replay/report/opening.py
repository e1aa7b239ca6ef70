"""The first line of the verdict: what serves best here, and by how much, of what may be claimed.

One arm is better than another where something may be said for it - delivered TTFT, end-to-end time, goodput or output
tokens/s - and nothing against it.
"""

from __future__ import annotations

from collections.abc import Sequence

from replay.metrics.arms import Arm
from replay.metrics.contrasts import Contrast
from replay.metrics.notation import duration, enumerate_words, number, percent, several, span
from replay.metrics.paired import Difference
from replay.report.claims import CLAIM, considered
from replay.report.findings import Findings
from replay.report.modes import of_reference
from replay.report.policies import families

MERITS = ("ttft_delivered", "e2e", "good", "output_throughput")
LATENCIES = ("ttft", "ttft_delivered", "e2e")
"""The first of them that may be claimed stands in the line."""


def better(pair: Contrast) -> int:
    """1 where `other` is better, -1 where `base` is, 0 where neither or each in its own way."""
    signs = {pair.differences[metric].merit for metric in MERITS} - {0}
    return signs.pop() if len(signs) == 1 else 0


def sound(pairs: Sequence[Contrast]) -> list[Contrast]:
    return [pair for pair in pairs if not pair.base.mark and not pair.other.mark]


def best_of_modes(pairs: Sequence[Contrast]) -> list[Arm]:
    """The arms, one a mode, that are better than some other and worse than none."""
    pairs = sound(of_reference(pairs))
    winners = [pair.other if better(pair) > 0 else pair.base for pair in pairs if better(pair)]
    losers = [pair.base if better(pair) > 0 else pair.other for pair in pairs if better(pair)]
    return [arm for arm in dict.fromkeys(winners) if arm not in losers]


def opening(trace: str, findings: Findings) -> str | None:
    """The answer in one line; None where nothing ran to its end, or where only settings were compared."""
    found = findings.contrasts[trace]
    if pairs := sound(of_reference(found.modes)):
        return _on_modes(pairs, findings, found.policies)
    if found.swept:
        return None
    if kinds := families(sound(found.policies)):
        return _on_policies(kinds[0])
    arms = findings.compared_of(trace)
    if len(arms) > 1:
        marked = [pair.base for pair in found.policies if pair.base.mark]
        base = f": policies are held against {marked[0].policy}{marked[0].mark}" if marked else ""
        return f"No two valid cells can be compared here{base}."
    return _facts(arms[0], findings) if arms else None


def _on_modes(pairs: Sequence[Contrast], findings: Findings, policies: Sequence[Contrast]) -> str:
    leaders = best_of_modes(pairs)
    if not leaders:
        if any(pair.differences[metric].seen for pair in pairs for metric in MERITS):
            return "No mode is best in everything here: what one gains in one measure it loses in another."
        return "No mode can be told from another here."
    leader = leaders[0]
    beaten = [pair for pair in pairs if leader in (pair.base, pair.other) and better(pair)]
    worst = max(beaten, key=lambda pair: findings.values.value(_rival(pair, leader), "e2e", "mean") or 0.0)
    modes = {arm for pair in pairs for arm in (pair.base, pair.other)}
    if len(leaders) == 1 and len(beaten) == len(modes) - 1:
        every = of_reference(findings.contrasts[leader.trace].modes)
        who = f"**{leader.setting}** serves best here" + (", of what is valid" if len(pairs) < len(every) else "")
    else:
        names = enumerate_words([f"**{arm.setting}**" for arm in leaders])
        who = f"{names} {'serves' if len(leaders) == 1 else 'serve'} better here than {_rival(worst, leader).setting}"
    in_leader = sound([pair for pair in policies if pair.base == leader])
    still = several([f"**{pair.name}**" for pair in in_leader if better(pair) > 0])
    also = f"; on average better still under {still}" if still and len(leaders) == 1 else ""
    rival = _rival(worst, leader)
    text = _figures(worst, leader, f" under {leader.policy}", f" in {rival.setting}")
    return f"{who}: {text}{also}."


def _on_policies(family: Sequence[Contrast]) -> str:
    base = family[0].base
    winners = [pair for pair in family if better(pair) > 0]
    if not winners:
        behind = [pair for pair in family if better(pair) < 0]
        if len(behind) == len(family):
            return f"**{base.policy}** serves best here, on average, of the policies in {base.setting}."
        return f"No policy can be said to be better than {base.policy} here, on average."

    def gain(pair: Contrast) -> float:
        return pair.differences["e2e"].difference or 0.0

    top = min(winners, key=gain)
    others = several([pair.name for pair in winners if pair is not top])
    also = f"; {others} {'is' if len(winners) == 2 else 'are'} better than {base.policy} too" if others else ""
    text = _figures(top, top.other, "", f" under {base.policy}")
    return f"**{top.name}** serves better than {base.policy} here, on average: {text}{also}."


def _rival(pair: Contrast, leader: Arm) -> Arm:
    return pair.other if pair.base == leader else pair.base


def _figures(pair: Contrast, leader: Arm, of_leader: str, of_rival: str) -> str:
    """`mean TTFT 320 ms under fifo against 3.07 s in static, and 2.1 times its output tokens/s`."""
    ahead = pair.other == leader
    sign = 1 if ahead else -1

    def sides(metric: str) -> tuple[float, float] | None:
        """The leader's value and the rival's, where it may be said that the leader's is better."""
        difference = pair.differences[metric]
        if difference.merit != sign or difference.base_mean is None or difference.difference is None:
            return None
        other = difference.base_mean + difference.difference
        return (other, difference.base_mean) if ahead else (difference.base_mean, other)

    parts = []
    for metric, name in [(one.metric, name) for one, name in considered(pair) if one.metric in LATENCIES]:
        if found := sides(metric):
            sure = _surely(pair.differences[metric])
            parts.append(f"{name} {duration(found[0])}{of_leader} against {duration(found[1])}{of_rival}{sure}")
            break
    if (rates := sides("output_throughput")) and rates[1]:
        times = f"{number(rates[0] / rates[1])} times"
        parts.append(f"{times} its output tokens/s" if parts else f"{times} as many output tokens/s as{of_rival}")
    if not parts and (shares := sides("good")):
        parts.append(f"goodput {percent(shares[0])}{of_leader} against {percent(shares[1])}{of_rival}")
    price = pair.differences["tpot"]
    if price.merit == -sign and price.base_mean and price.difference is not None:
        ratio = (price.base_mean + price.difference) / price.base_mean
        parts.append(f"at {number(ratio if ahead else 1 / ratio)} times its time per token")
    return ", and ".join(parts[:2]) + (f", {parts[2]}" if len(parts) > 2 else "")


def _surely(difference: Difference) -> str:
    """` (5.86 s less; 95 % interval 5.08 to 6.63 s)`, by how much the leader's latency is the shorter one."""
    if difference.difference is None or difference.low is None or difference.high is None:
        return ""
    ends = sorted((abs(difference.low), abs(difference.high)))
    return f" ({duration(abs(difference.difference))} less; {CLAIM} {span(*ends)})"


def _facts(arm: Arm, findings: Findings) -> str:
    """One arm alone has nothing to be compared with."""
    value = findings.values.value
    return (
        f"**{arm.policy}** in {arm.setting}{arm.mark}: mean TTFT {duration(value(arm, 'ttft', 'mean'))}, "
        f"{number(value(arm, 'output_throughput', 'value'))} output tokens/s. Nothing was run to compare it with."
    )
