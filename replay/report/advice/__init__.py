"""Advice: pitfalls that are found in the rows of a run, each said with its evidence, its price and a setting to try.

One file a pitfall. A new file in this folder is registered; nothing else needs to be touched.
"""

from importlib import import_module
from pkgutil import iter_modules

from replay.report.advice.registry import Advice, Case, Pitfall, advise, pitfalls
from replay.report.advice.telling import advice_json, advice_section, in_short, told_of_advice, tried

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")

__all__ = [
    "Advice",
    "Case",
    "Pitfall",
    "advice_json",
    "advice_section",
    "advise",
    "in_short",
    "pitfalls",
    "told_of_advice",
    "tried",
]
