"""Ray, if it is there, is not to look for another runner's environment."""

import os

os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
