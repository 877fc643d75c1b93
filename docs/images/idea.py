"""Draw idea.png: a handwritten digit, nine agents with one patch each, and their errors round by round.

python docs/images/idea.py
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from collegium import Team, data, policy, topology

ROUNDS, SPLITS = 12, 20
BLUE, ORANGE, GREY = "#3f51b5", "#e65100", "#9e9e9e"
network = policy.metropolis(topology.grid(3, 3))

errors = []
for split in range(SPLITS):
    train, test = data.digits(classes=(3, 8), seed=split)
    team = Team([(name, LogisticRegression()) for name in train.agent_names], network, ROUNDS, workers=1)
    errors.append(team.fit(train.views, train.y).run(test.views).errors(test.y))
percent = 100 * np.mean(errors, axis=0)  # (rounds + 1, agents)

figure, (seen, agents, course) = plt.subplots(
    1, 3, figsize=(11, 3.7), width_ratios=(1, 1.15, 1.7), layout="constrained", facecolor="white"
)
digits = load_digits()
image = digits.images[np.flatnonzero(digits.target == 3)[5]]
cuts = (0, 3, 6, 8)  # as data.digits cuts it: 3, 3 and 2 pixels
seen.imshow(image, cmap="gray_r")
for cut in cuts[1:-1]:
    seen.axhline(cut - 0.5, color=ORANGE)
    seen.axvline(cut - 0.5, color=ORANGE)
seen.set_title("one item, nine private views")
seen.axis("off")

places = [(column, 2 - row) for row in range(3) for column in range(3)]
for k, (x, y) in enumerate(places):
    for other in network.graph.neighbours(k):
        if other > k:
            agents.plot([x, places[other][0]], [y, places[other][1]], color=BLUE, linewidth=2, zorder=1)
for k, (x, y) in enumerate(places):
    row, column = divmod(k, 3)
    patch = image[cuts[row] : cuts[row + 1], cuts[column] : cuts[column + 1]]
    size = 0.27
    agents.imshow(patch, cmap="gray_r", vmin=0, vmax=16, extent=(x - size, x + size, y - size, y + size), zorder=2)
    agents.add_patch(plt.Rectangle((x - size, y - size), 2 * size, 2 * size, fill=False, color=BLUE, lw=1.5, zorder=3))
agents.set(xlim=(-0.4, 2.4), ylim=(-0.4, 2.4), title="each sends one number to its neighbours")
agents.axis("off")

course.plot(percent, color=BLUE, alpha=0.35, linewidth=1)
course.plot(percent.mean(axis=1), color=BLUE, linewidth=2.5)
end, alone = percent[-1].mean(), percent[0].mean()
course.annotate(f"alone: {alone:.0f} %", (0, alone), (0.9, alone + 5), color=BLUE)
course.annotate(f"together: {end:.1f} %", (ROUNDS, end), (ROUNDS - 3.4, end + 3), color=BLUE)
course.set(xlabel="rounds", ylabel="error % of each agent, and their mean", xlim=(0, ROUNDS), ylim=(0, None))
course.set_title("3 or 8? They agree, and are right more often")
course.spines[["top", "right"]].set_visible(False)
figure.savefig(Path(__file__).with_name("idea.png"), dpi=110)
print(percent[[0, 1, 2, 5, ROUNDS]].mean(axis=1).round(2), percent[0].round(1))
