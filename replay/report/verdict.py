"""The verdict: a few plain sentences on what differs, by how much, and how sure that is. What is worst comes first."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from replay.metrics.arms import Arm
from replay.metrics.contrasts import Contrast, base_policy, queued
from replay.metrics.notation import duration, enumerate_words, number, percent, plural, span
from replay.metrics.paired import STEADY, Difference
from replay.report.findings import Findings
from replay.report.who_pays import who_pays

CLAIM = "95 % interval"


def verdict(findings: Findings) -> list[str]:
    """Sentences, one a bullet."""
    sentences = health(findings)
    if findings.total("completed") == 0:
        return sentences
    for trace in findings.traces:
        prefix = f"{trace}: " if len(findings.traces) > 1 else ""
        sentences += [prefix + sentence for sentence in _of_trace(findings, trace)]
    return [*sentences, *steadiness(findings), certainty(findings)]


def health(findings: Findings) -> list[str]:
    """What a reader must know before any number: failures, missing parts, a simulated clock, invalid cells."""
    run, sentences = findings.run, []
    requests, completed = findings.total("requests"), findings.total("completed")
    if not findings.arms:
        sentences.append("No cell left any row: there is nothing to report.")
    elif completed < requests:
        sentences.append(f"{completed:,} of {requests:,} requests completed{_whereabouts(findings)}.")
    sentences += [f"Cell {cell.name} failed: {cell.error.rstrip('.')}." for cell in run.cells if cell.error]
    if run.partial:
        done = sum(not cell.partial for cell in run.cells)
        sentences.append(
            f"This report is partial: the run is {run.status}, "
            f"and {done} of {plural(len(run.cells), 'cell')} ran to the end."
        )
    if findings.simulated:
        sentences.append("Simulated: all times come from a cost model on a virtual clock, not from hardware.")
    if invalid := [cell for cell in run.cells if not cell.valid]:
        names = enumerate_words([cell.name for cell in invalid])
        verb = "is" if len(invalid) == 1 else "are"
        sentences.append(f"{names} {verb} invalid: {invalid[0].invalid_reason or 'requests were submitted too late'}.")
    return sentences


def _whereabouts(findings: Findings) -> str:
    """How the others ended, and the most common reason."""
    statuses = ("rejected", "timed_out", "cancelled", "failed", "skipped", "unfinished")
    counts = [f"{total:,} {status.replace('_', ' ')}" for status in statuses if (total := findings.total(status))]
    reasons = [
        cell.table("requests").filter(pl.col("status") != "completed").select("reason")
        for arm in findings.arms
        for cell in arm.cells
    ]
    common = pl.concat(reasons).drop_nulls().group_by("reason").len().sort("len", "reason", descending=[True, False])
    why = f"; most often because: {common['reason'][0]}" if len(common) else ""
    return f" ({', '.join(counts)}{why})"


def _of_trace(findings: Findings, trace: str) -> list[str]:
    contrasts = findings.contrasts[trace]
    sentences = _modes(contrasts.modes, findings)
    families: dict[tuple[str, str], list[Contrast]] = {}
    for contrast in contrasts.policies:
        families.setdefault((contrast.base.mode, contrast.base.variant), []).append(contrast)
    for family in families.values():
        sentences.append(_policies(family, findings))
        if any(queued(arm, findings.values) for arm in _members(family)) and (told := who_pays(family)):
            sentences.append(told)
    sentences += _swept(contrasts.swept, findings)
    if goodput := _goodput(findings.of(trace), findings):
        sentences.append(goodput)
    return sentences


def tell(difference: Difference, *, smaller: str, larger: str) -> str:
    """`45 ms shorter (-30 %; 95 % interval 30 to 60 ms)`."""
    assert difference.difference is not None
    word = smaller if difference.difference < 0 else larger
    details = []
    if difference.relative is not None:
        details.append(f"{difference.relative * 100:+.0f} %".replace("-", "−"))  # noqa: RUF001  # a true minus
    if difference.low is not None and difference.high is not None:
        ends = sorted((abs(difference.low), abs(difference.high)))
        details.append(f"{CLAIM} {span(*ends)}")
    return f"{duration(abs(difference.difference))} {word}" + (f" ({'; '.join(details)})" if details else "")


def _modes(pairs: Sequence[Contrast], findings: Findings) -> list[str]:
    """The modes against each other, told under the policy that the others are held against."""
    if not pairs:
        return []
    reference = base_policy(arm for pair in pairs for arm in (pair.base, pair.other)).policy
    sentences = []
    for pair in pairs:
        if pair.base.policy != reference:
            continue
        found = _seen(pair)
        throughput = pair.differences["output_throughput"]
        if throughput.seen and throughput.relative is not None:
            found.append(f"{number(1 + throughput.relative)} times the output tokens/s")
        others = [other for other in pairs if (other.base.setting, other.other.setting) == _settings(pair)]
        directions = {_direction(other, "e2e") for other in others}
        agree = len(others) > 1 and len(directions) == 1 and directions != {0}
        also = " The direction of the end-to-end time is the same under every policy." if agree else ""
        unclaimed = _unclaimed(pair)
        nothing = (
            "nothing can be claimed: the machine ran at another pace"
            if unclaimed
            else "no difference seen in TTFT, end-to-end time, goodput or throughput"
        )
        what = enumerate_words(found) if found else nothing
        sentences.append(f"**{pair.other.setting}** against {pair.base.setting} (under {reference}): {what}.{also}")
    return sentences


def _settings(pair: Contrast) -> tuple[str, str]:
    return pair.base.setting, pair.other.setting


def _direction(pair: Contrast, metric: str) -> int:
    difference = pair.differences[metric]
    if not difference.seen or difference.difference is None:
        return 0
    return 1 if difference.difference > 0 else -1


def _members(family: Sequence[Contrast]) -> list[Arm]:
    return [family[0].base, *(contrast.other for contrast in family)]


def _policies(family: Sequence[Contrast], findings: Findings) -> str:
    """The policies within one mode, against its base."""
    base = family[0].base
    if not any(queued(arm, findings.values) for arm in _members(family)):
        return (
            f"**Policies in {base.setting}**: no queueing: policies cannot be told apart, "
            "because hardly any request was left waiting when others were admitted."
        )
    alike: dict[str, list[str]] = {}  # what is said, and of whom
    for contrast in family:
        found = _seen(contrast)
        what = (
            enumerate_words([f"a {difference}" for difference in found]) + _price(contrast, findings) if found else ""
        )
        alike.setdefault(what, []).append(contrast.name)
    unseen = alike.pop("", [])
    unclaimed = [contrast.name for contrast in family if contrast.name in unseen and _unclaimed(contrast)]
    unseen = [name for name in unseen if name not in unclaimed]
    told = [f"**{enumerate_words(names)}** {plural_verb(names)} {what}" for what, names in alike.items()]
    if unclaimed:
        told.append(f"nothing can be claimed of {enumerate_words(unclaimed)}: the machine ran at another pace")
    if unseen:
        told.append(f"no difference seen on average for {enumerate_words(unseen)}")
    return f"**Policies in {base.setting}**, against {base.policy}: {'; '.join(told)}."


def _unclaimed(contrast: Contrast) -> bool:
    """Whether a difference shows that the machine's pace may have made."""
    told = (contrast.differences[metric] for metric in ("ttft", "e2e", "good"))
    return any(difference.apparent and difference.confounded for difference in told)


def plural_verb(names: Sequence[str]) -> str:
    return "has" if len(names) == 1 else "have"


def _seen(contrast: Contrast) -> list[str]:
    """The differences that may be claimed: of TTFT, end-to-end time and goodput."""
    found = []
    for metric, name in (("ttft", "mean TTFT"), ("e2e", "mean end-to-end time")):
        difference = contrast.differences[metric]
        if difference.seen:
            found.append(f"{name} {tell(difference, smaller='shorter', larger='longer')}")
    good = contrast.differences["good"]
    if good.seen and good.difference is not None:
        points = number(abs(good.difference) * 100)
        found.append(f"goodput {points} points {'higher' if good.difference > 0 else 'lower'}")
    return found


def _price(contrast: Contrast, findings: Findings) -> str:
    """What the longest wait became, where it changed by much."""
    before, after = (findings.values.value(arm, "longest_wait", "value") for arm in (contrast.base, contrast.other))
    if before is None or after is None or abs(after - before) <= 0.1 * max(before, 1e-9):
        return ""
    joint = "but" if after > before else "and"
    return f", {joint} the longest wait is {duration(after)} instead of {duration(before)}"


def _swept(families: Sequence[Sequence[Arm]], findings: Findings) -> list[str]:
    """Which of the swept settings is best, mode by mode; one sentence where all policies agree."""
    sentences: dict[tuple[str, str], list[str]] = {}
    for family in families:
        sentences.setdefault((family[0].mode, _best_setting(family, findings)), []).append(family[0].policy)
    told = []
    for (mode, sentence), policies in sentences.items():
        everywhere = len(policies) == sum(family[0].mode == mode for family in families) > 1
        who = "every policy" if everywhere else enumerate_words(policies)
        told.append(f"In {mode} mode, under {who}, {sentence}.")
    return told


def _best_setting(family: Sequence[Arm], findings: Findings) -> str:
    """`**max_running=8** is best by goodput, then by output tokens/s`; settings that come out alike share it."""

    def outcome(arm: Arm) -> tuple[str, str]:
        goodput = findings.values.value(arm, "goodput", "value")
        return percent(goodput), number(findings.values.value(arm, "output_throughput", "value"))

    leaders = [arm for arm in family if outcome(arm) == outcome(family[0])]
    names = enumerate_words([f"**{arm.variant or arm.mode}**" for arm in leaders])
    if len(leaders) == len(family):
        return f"no difference is seen between {names}"
    return f"{names} {'is' if len(leaders) == 1 else 'are'} best by goodput, then by output tokens/s"


def _goodput(found: Sequence[Arm], findings: Findings) -> str | None:
    """Who meets the goals most often."""
    shares = {arm: findings.values.value(arm, "goodput", "value") for arm in found}
    known = {arm: share for arm, share in shares.items() if share is not None}
    if len(known) < 2:
        return None
    top, bottom = max(known.values()), min(known.values())
    if percent(top) == percent(bottom):
        return f"Goodput is {percent(top)} everywhere."
    leaders = [arm.label for arm in known if percent(known[arm]) == percent(top)]
    who = enumerate_words(leaders) if len(leaders) <= 3 else f"{len(leaders)} of {len(known)} combinations"
    return f"Goodput is highest, {percent(top)}, with {who}; the lowest is {percent(bottom)}."


def steadiness(findings: Findings) -> list[str]:
    """Whether the machine kept one speed, where it did not."""
    paces = {arm.label: pace for arm in findings.arms if (pace := findings.values.value(arm, "pace", "value"))}
    if not paces or max(paces.values()) <= STEADY * min(paces.values()):
        return []
    slow, fast = (choose(paces, key=lambda label: paces[label]) for choose in (max, min))
    return [
        f"The machine did not keep one speed: steps took {number(paces[fast])} times what the engine's cost model "
        f"gives them in {fast}, and {number(paces[slow])} times in {slow}. "
        "Differences that this could have made are not claimed."
    ]


def certainty(findings: Findings) -> str:
    """Where the sureness comes from."""
    simulated = all(cell.simulated for cell in findings.run.recorded)
    if findings.repeated:
        return f"Differences no larger than those between repeats of one cell are not claimed{_noise(findings)}."
    if simulated:
        return "Each cell was run once; a simulated replay repeats exactly, so there is no run-to-run noise to measure."
    return "Each cell was run once: run-to-run noise was not measured, so a small difference may be noise."


def _noise(findings: Findings) -> str:
    """`; the largest in mean TTFT is 40 ms, between repeats of static, fifo`."""
    spreads = {}
    for arm in findings.arms:
        means = findings.values.repeats(arm, "ttft", "mean")
        if len(means) > 1:
            spreads[arm] = max(means) - min(means)
    if not spreads:
        return ""
    worst = max(spreads, key=lambda arm: spreads[arm])
    return f"; the largest in mean TTFT is {duration(spreads[worst])}, between repeats of {worst.label}"
