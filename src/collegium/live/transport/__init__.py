"""How frames travel: the interface, within one process, over Zenoh, and with faults added."""

from collegium.live.transport.base import Peer, Place, Tls, Transport

__all__ = ["Peer", "Place", "Tls", "Transport"]
