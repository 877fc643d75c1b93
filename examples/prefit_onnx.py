"""Models that were fitted elsewhere arrive as ONNX files; only their centers are learned, and one camera fails."""

from pathlib import Path
from tempfile import TemporaryDirectory

from skl2onnx import to_onnx
from sklearn.linear_model import LogisticRegression

from collegium import Team, agents, data, policy, topology

train, test = data.digits(classes=(4, 9))
flat = [view.reshape(len(view), -1).astype("float32") for view in train.views]

with TemporaryDirectory() as folder:
    members = []
    for name, view in zip(train.agent_names, flat, strict=True):  # as nine owners would, each for itself
        fitted = LogisticRegression().fit(view, train.y)
        file = Path(folder) / f"{name}.onnx"
        file.write_bytes(to_onnx(fitted, view[:1], options={"zipmap": False}).SerializeToString())
        members.append((name, agents.OnnxModel(file)))

    team = Team.from_fitted(members, policy.metropolis(topology.grid(3, 3)), center="mean", train_views=train.views)
    print(f"all nine: {100 * (1 - team.score(test.views, test.y)):.1f} % wrong")

    views = [None if k == 4 else view for k, view in enumerate(test.views)]  # no agent sees the middle
    run = team.run(views)
    print(run)
    print(f"without the middle: {100 * run.errors(test.y)[-1].mean():.1f} % wrong")

    team.save(Path(folder) / "team")  # no pickle: ONNX files, the network, and a manifest with checksums
    again = Team.load(Path(folder) / "team")
    assert (again.run(views).statistics == run.statistics).all()
