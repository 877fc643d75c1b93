"""Whether a folder was written by this user on this machine: then all its types are trusted.

A key that only the user can read, made when it is first needed, signs the manifest, which has the checksums of all
files. Whoever can read the key can run code as the user anyway.
"""

import hashlib
import hmac
import os
from pathlib import Path

from collegium._util.files import atomic_write

SIGNATURE = "local.sig"


def sign(folder: Path, manifest: bytes) -> None:
    """Sign a manifest beside it; where no key can be kept, the folder is one of unknown origin."""
    key = _key(make=True)
    if key is not None:
        (folder / SIGNATURE).write_bytes(_mark(key, manifest))


def is_own(folder: Path, manifest: bytes) -> bool:
    """Whether this user signed this manifest on this machine."""
    key = _key(make=False)
    try:
        return key is not None and hmac.compare_digest((folder / SIGNATURE).read_bytes(), _mark(key, manifest))
    except OSError:
        return False


def _mark(key: bytes, manifest: bytes) -> bytes:
    return hmac.new(key, manifest, hashlib.sha256).hexdigest().encode("ascii") + b"\n"


def _key(make: bool) -> bytes | None:
    """The user's key, if it can be had and nobody else can read it."""
    try:
        home = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
        path = Path(home, "collegium", "local.key")
        if make and not path.exists():
            with atomic_write(path, parents=True, mode=0o600) as file:
                file.write(os.urandom(32))
        state = path.stat()
        others = state.st_mode & 0o077 or (hasattr(os, "getuid") and state.st_uid != os.getuid())
        return None if others and os.name == "posix" else path.read_bytes() or None
    except (OSError, RuntimeError):
        return None
