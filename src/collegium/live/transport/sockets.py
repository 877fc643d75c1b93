"""The sockets behind Zenoh's links: what Zenoh itself offers no setting for, done to the sockets of this process."""

from __future__ import annotations

import ctypes
import ipaddress
import os
import socket
import struct
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

_ATTACH_FILTER, _DETACH_FILTER = 26, 27  # Linux
_ESTABLISHED = b"\x01"  # Linux: the first byte of TCP_INFO
_SILENT = 30  # seconds a connection may say nothing before the kernel hands it over


def break_stalled(src: str, dst: str, milliseconds: int) -> None:
    """Let the kernel break a link that takes no more data after so long.

    Zenoh waits for its writer when it closes a link. A writer stuck in the full buffer of a stopped or vanished
    neighbour would keep that neighbour's token until the kernel's own timeout, in a quarter of an hour.
    """
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux has it
        for one in _between(src, dst):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, milliseconds)


def mute(src: str, dst: str) -> None:
    """Let nothing more in from a link; Zenoh closes it after its lease.

    Closing it at once would be worse: whoever is at the other end connects again at once, hundreds of times a second.
    """
    for one in _between(src, dst):
        instruction = ctypes.create_string_buffer(struct.pack("HBBI", 0x06, 0, 0, 0))  # BPF: return 0 bytes of a packet
        try:
            one.setsockopt(socket.SOL_SOCKET, _ATTACH_FILTER, struct.pack("HL", 1, ctypes.addressof(instruction)))
        except OSError:
            one.shutdown(socket.SHUT_RDWR)


def unmute(src: str, dst: str) -> None:
    """Let a muted link in again; nothing is lost, since the other end sends again what nobody acknowledged."""
    for one in _between(src, dst):
        with suppress(OSError):
            one.setsockopt(socket.SOL_SOCKET, _DETACH_FILTER, 0)


def is_open(src: str, dst: str) -> bool:
    """Whether a link is established at both ends; also where that cannot be seen."""
    if not hasattr(socket, "TCP_INFO") or not os.path.isdir("/proc/self/fd"):
        return True
    return any(one.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1) == _ESTABLISHED for one in _between(src, dst))


def cut(src: str, dst: str) -> None:
    """End a link at once."""
    for one in _between(src, dst):
        with suppress(OSError):  # the other end was quicker
            one.shutdown(socket.SHUT_RDWR)


def cut_accepted(listen: str) -> None:
    """End at once all links that others opened to where this agent listens.

    A session that closes while a neighbour opens a link may leave that link behind, alive: the neighbour would take
    the next session of this agent for that of another process.
    """
    for one in _sockets():
        with suppress(OSError):
            if _is_at(_name(one.getsockname()), _end(listen)):
                one.shutdown(socket.SHUT_RDWR)


def ignore_silent(listen: str) -> None:
    """Let the kernel keep connections to itself on which nothing arrives: port scanners, probes that only connect.

    Zenoh pauses for 100 ms after every handshake that fails, so ten such connections a second would keep it busy.
    """
    if hasattr(socket, "TCP_DEFER_ACCEPT"):
        for one in _sockets():
            with suppress(OSError):
                listens = one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
                if listens and _is_at(_name(one.getsockname()), _end(listen)):
                    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, _SILENT)


def port(locator: str) -> str:
    """The port of an address such as `tls/10.0.0.3:7403`."""
    return _end(locator).rpartition(":")[2]


def is_at(locator: str, endpoint: str) -> bool:
    """Whether an address is where an endpoint says; of a host that is given by its name, or as any, the port alone
    counts, since the address a name leads to may change."""
    return _is_at(_end(locator), _end(endpoint))


def _is_at(address: str, endpoint: str) -> bool:
    (host, number), (other, wanted) = (one.rpartition(":")[::2] for one in (address, endpoint))
    if number != wanted:
        return False
    try:
        here, there = (ipaddress.ip_address(one.strip("[]")) for one in (host, other))
    except ValueError:
        return True
    return there.is_unspecified or here == there


def _between(src: str, dst: str) -> Iterator[socket.socket]:
    ends = (_end(src), _end(dst))
    for one in _sockets():
        with suppress(OSError):
            if (_name(one.getsockname()), _name(one.getpeername())) == ends:
                yield one


def _sockets() -> Iterator[socket.socket]:
    """Copies of all sockets of this process, closed one after the other."""
    try:
        numbers = os.listdir("/proc/self/fd")
    except OSError:  # not Linux
        return
    for number in numbers:
        try:
            if not os.readlink(f"/proc/self/fd/{number}").startswith("socket:"):
                continue  # making a socket of anything else fails, and leaves the copy open
            copy = os.dup(int(number))
        except OSError:
            continue  # closed by now
        with suppress(OSError), socket.socket(fileno=copy) as one:
            yield one


def _end(locator: str) -> str:
    return locator.partition("/")[2].partition("#")[0]


def _name(address: Any) -> str:
    if not isinstance(address, tuple):
        return ""
    host, port = address[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
