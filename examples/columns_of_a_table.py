"""Three clinics hold different columns of one table, each with a model of its own kind, and decide together."""

from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from collegium import Team, policy, topology

X, y = load_breast_cancer(return_X_y=True)  # 30 columns: ten means, ten standard errors, ten worst values
columns = [range(10), range(10, 20), range(20, 30)]
clinics = [
    ("means", make_pipeline(StandardScaler(), LogisticRegression())),
    ("errors", RandomForestClassifier(100)),
    ("worst", GaussianNB()),
]

for (name, model), own in zip(clinics, columns, strict=True):
    print(f"{name:>8} alone: {100 - 100 * cross_val_score(model, X[:, own], y, cv=5).mean():.1f} % wrong")

# Bounded scores keep the boldest model, the naive one, from shouting the others down.
team = Team(clinics, policy.metropolis(topology.path(3)), bounded=True, columns=columns, random_state=0)
print(f"together: {100 - 100 * cross_val_score(team, X, y, cv=5).mean():.1f} % wrong")
