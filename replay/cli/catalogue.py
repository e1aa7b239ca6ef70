"""The policies that come with replay, registered by importing their package, as only the command line may."""

from __future__ import annotations

from replay.errors import ReplayError


def register_policies() -> None:
    """Import the package `policies`. Raises ReplayError, naming the folder, when it registers nothing."""
    import policies as package
    from replay.scheduler import policies

    if not len(policies):
        places = ", ".join(package.__path__)
        raise ReplayError(
            f"{places}: this package `policies` registers no policy; it hides the one that came with replay"
        )
