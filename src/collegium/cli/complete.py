"""What the shell offers when Tab is pressed."""

from collections.abc import Callable


def among(*words: str) -> Callable[[str], list[str]]:
    """Offer those of a few words that begin as typed. Where none does, the shell offers files.

    >>> among("ring:12", "grid:3x4")("r")
    ['ring:12']
    """

    def offer(incomplete: str) -> list[str]:
        return [word for word in words if word.startswith(incomplete)]

    return offer
