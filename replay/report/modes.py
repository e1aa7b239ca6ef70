"""The sentences on modes against each other, told under the policy that the others are held against."""

from __future__ import annotations

from collections.abc import Sequence

from replay.metrics.arms import base_policy
from replay.metrics.contrasts import Contrast
from replay.metrics.notation import enumerate_words
from replay.report.claims import claimed, doubtful, paced


def of_reference(pairs: Sequence[Contrast]) -> list[Contrast]:
    """The pairs of modes under fifo, or under the first policy."""
    if not pairs:
        return []
    reference = base_policy(arm for pair in pairs for arm in (pair.base, pair.other)).policy
    return [pair for pair in pairs if pair.base.policy == reference]


def told_of_modes(pairs: Sequence[Contrast]) -> list[str]:
    sentences = []
    for pair in of_reference(pairs):
        others = [other for other in pairs if _settings(other) == _settings(pair)]
        signs = {other.differences["e2e"].merit for other in others}
        agree = len(others) > 1 and len(signs) == 1 and signs != {0}
        also = " The direction of the end-to-end time is the same under every policy." if agree else ""
        why = paced(pair)
        nothing = f"on average nothing can be claimed ({why})" if why else "no difference seen on average"
        parts = [enumerate_words(claimed(pair)) or nothing]
        if sizes := doubtful(pair):
            parts.append(sizes)
        base = f"{pair.base.setting}{pair.base.mark} (under {pair.base.policy})"
        sentences.append(f"**{pair.other.setting}**{pair.other.mark} against {base}: {'; '.join(parts)}.{also}")
    return sentences


def _settings(pair: Contrast) -> tuple[str, str]:
    return pair.base.setting, pair.other.setting
