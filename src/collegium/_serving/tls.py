"""`Tls`: whose certificate a port shows, and whose it trusts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Tls:
    """An agent's own certificate and key, and the certificate of the authority that signed all of the network."""

    ca: Path
    certificate: Path
    key: Path
