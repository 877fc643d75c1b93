"""Hosts on one machine: network namespaces joined by two switches, with a link between the switches that can be cut."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass, field

import pytest


def ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True)
    if done.returncode:
        raise OSError(f"ip {' '.join(words)}: {done.stderr.strip()}")


@dataclass
class Hosts:
    """Hosts 0…n-1: `address(k)` reaches the others, `door(k)` reaches host k from the test itself, whatever is cut."""

    size: int
    tag: str = field(default_factory=lambda: f"c{os.getpid() % 10000}")

    def __enter__(self) -> Hosts:
        if os.geteuid() != 0 or shutil.which("ip") is None:
            pytest.skip("network namespaces need root and iproute2 (make system)")
        try:
            self._build()
        except OSError as problem:
            self.__exit__()
            pytest.skip(f"this machine has no network namespaces: {problem}")
        return self

    def __exit__(self, *_: object) -> None:
        for name in (*(self.name(k) for k in range(self.size)), self._switch):
            subprocess.run(["ip", "netns", "del", name], capture_output=True)
        for k in range(self.size):
            subprocess.run(["ip", "link", "del", f"{self.tag}m{k}"], capture_output=True)

    def name(self, k: int) -> str:
        return f"{self.tag}h{k}"

    def address(self, k: int) -> str:
        return f"10.177.0.{k + 1}"

    def door(self, k: int) -> str:
        return f"10.178.{k}.2"

    def link(self, k: int, is_up: bool) -> None:
        """Cut or heal the link of one host."""
        ip("-n", self._switch, "link", "set", f"p{k}", "up" if is_up else "down")

    def halves(self, joined: bool) -> None:
        """Cut the network into the first and the second half of the hosts, or heal it."""
        ip("-n", self._switch, "link", "set", "between0", "up" if joined else "down")

    @property
    def _switch(self) -> str:
        return f"{self.tag}s"

    def _build(self) -> None:
        ip("netns", "add", self._switch)
        for half in (0, 1):
            ip("-n", self._switch, "link", "add", f"switch{half}", "type", "bridge")
            ip("-n", self._switch, "link", "set", f"switch{half}", "up")
        ip("-n", self._switch, "link", "add", "between0", "type", "veth", "peer", "name", "between1")
        for half in (0, 1):
            ip("-n", self._switch, "link", "set", f"between{half}", "master", f"switch{half}", "up")
        for k in range(self.size):
            ip("netns", "add", self.name(k))
            ip(
                "-n",
                self._switch,
                "link",
                "add",
                f"p{k}",
                "type",
                "veth",
                "peer",
                "name",
                "eth0",
                "netns",
                self.name(k),
            )
            ip("-n", self._switch, "link", "set", f"p{k}", "master", f"switch{int(2 * k >= self.size)}", "up")
            ip("-n", self.name(k), "addr", "add", f"{self.address(k)}/24", "dev", "eth0")
            ip("link", "add", f"{self.tag}m{k}", "type", "veth", "peer", "name", "door", "netns", self.name(k))
            ip("addr", "add", f"10.178.{k}.1/24", "dev", f"{self.tag}m{k}")
            ip("link", "set", f"{self.tag}m{k}", "up")
            ip("-n", self.name(k), "addr", "add", f"{self.door(k)}/24", "dev", "door")
            for device in ("lo", "eth0", "door"):
                ip("-n", self.name(k), "link", "set", device, "up")
