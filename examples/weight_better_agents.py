"""Give better agents more weight: Hastings weights from validation errors, against equal ones."""

import numpy as np

from collegium import collaborate, policy, topology

rng = np.random.default_rng(0)
strength = np.array([1.5, 1.0, 0.5, 0.2, 0.1, 0.1])  # the first agents see much more than the last


def draw(n: int) -> tuple[np.ndarray, np.ndarray]:
    y = np.where(rng.random(n) < 0.5, 1, -1)
    return strength * y[:, None] + rng.normal(size=(n, len(strength))), y


validation, y_validation = draw(400)
test, y_test = draw(4000)
separation = np.array([(validation[:, k] * y_validation).mean() for k in range(len(strength))])
graph = topology.ring(len(strength))

for name, network in [
    ("equal weights", policy.metropolis(graph)),
    ("weights by validation margin", policy.hastings(graph, np.maximum(separation, 0.01))),
]:
    error = collaborate(test, network, rounds=60, record="final").errors(y_test)[-1].mean()
    print(f"{name}: {100 * error:.1f} % wrong")
