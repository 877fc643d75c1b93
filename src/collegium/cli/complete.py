"""What the shell offers when Tab is pressed."""

from collections.abc import Callable


def among(*choices: str) -> Callable[[str], list[str]]:
    """Offer those of a few choices that begin as typed. Where none does, the shell offers files.

    >>> among("ring:12", "grid:3x4")("r")
    ['ring:12']
    """

    def offer(incomplete: str) -> list[str]:
        return [one for one in choices if one.startswith(incomplete)]

    return offer
