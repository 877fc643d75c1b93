"""A fitted team as a folder, without pickle: what is read back decides exactly as what was written.

    manifest.json        the agents, all settings, what was learned, versions and checksums
    policy.npz           the network: who hears whom, and the weights
    00-north.skops       one file per agent: scikit-learn estimators as skops writes them,
    01-east.safetensors  the weights of a PyTorch module,
    02-west.onnx         or the ONNX file
    sets.npz             what prediction sets need, if the team was given held-out items

Checksums notice damage and edits, but not a forger who computes them anew. Against forgers there is no code in any
file: types that skops does not know to be harmless are loaded only if they are named in `trusted`, and a PyTorch module
that is none of ours is brought by the user. What the same user saved on the same machine is known by its signature,
local.sig, and needs no such list.
"""

from collegium._team_files.loading import load
from collegium._team_files.saving import save

__all__ = ["load", "save"]
