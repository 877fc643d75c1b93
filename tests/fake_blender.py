"""A Blender that draws nothing: the real `_blender.py` with its four dealings with `bpy` replaced.

What it does to an object is in the object's name: `slow` takes its time, `dies` and `killed` end the process after
one view, `once` does so the first time only, `full` finds no space left.
"""

import errno
import os
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from collegium.data import _blender


def fake_blender(folder: Path) -> Path:
    """Something that can be called like a Python with Blender in it; it notes its processes in `pids` beside it."""
    path = folder / "fake-blender"
    path.write_text(f'#!/bin/sh\nFAKE_PIDS={folder}/pids exec "{sys.executable}" "{__file__}" "$@"\n')
    path.chmod(0o755)
    return path


def broken_blender(folder: Path, said: str) -> Path:
    """Something that ends with this on standard error, whatever it is asked."""
    path = folder / "broken-blender"
    path.write_text(f"#!/bin/sh\necho '{said}' >&2\nexit 1\n")
    path.chmod(0o755)
    return path


def _save(path, grey, alpha, scratch, save=_blender.save):
    name = os.path.basename(os.path.dirname(path))
    if "slow" in name:
        time.sleep(0.1)
    if "full" in name:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    if path.endswith("01.png") and "dies" in name:
        sys.exit("Segments are at fault")
    once = os.environ["FAKE_PIDS"] + "-once"
    if path.endswith("01.png") and "once" in name and not os.path.exists(once):
        open(once, "w").close()
        os.kill(os.getpid(), 9)
    if path.endswith("01.png") and "killed" in name:
        os.kill(os.getpid(), 9)
    save(path, grey, alpha, scratch)


def _scene(settings):
    with open(os.environ["FAKE_PIDS"], "a") as pids:
        pids.write(f"{os.getpid()} {settings['threads']}\n")
    shape = (settings["size"], settings["size"])
    _blender.shoot = lambda path: (np.full(shape, os.getpid() % 251, np.uint8), np.full(shape, 200, np.uint8))
    return None, None


if __name__ == "__main__" and sys.argv[1:3] == ["-P", "-c"]:
    sys.stdout.write("bpy is here\n")
elif __name__ == "__main__":
    nothing = SimpleNamespace(remove=lambda mesh: None)
    _blender.bpy = SimpleNamespace(app=SimpleNamespace(version_string="none"), data=SimpleNamespace(meshes=nothing))
    _blender.make_scene, _blender.save = _scene, _save
    _blender.add_object = lambda *arrays: SimpleNamespace(data=None)
    _blender.aim = lambda *angles: None
    sys.argv = sys.argv[2:]
    _blender.main()
