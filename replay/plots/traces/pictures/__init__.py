"""Pictures of a trace, one a file. Importing this package registers every one of them.

A new file in this folder is a picture; nothing else needs to be touched.
"""

from importlib import import_module
from pkgutil import iter_modules

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
