"""Transforms: what an experiment may do to a trace before it is replayed, a small file for each or for a family.

Importing this package registers every one of them: a new file here with a registered function is a transform, in an
experiment and in `replay trace transform`. What one may rely on, and what it owes, is in `declaring`.
"""

from importlib import import_module
from pkgutil import iter_modules

from replay.traces.transforms.declaring import Declared, Transform, apply_transforms, parse_transforms, transforms

__all__ = ["Declared", "Transform", "apply_transforms", "parse_transforms", "transforms"]

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
