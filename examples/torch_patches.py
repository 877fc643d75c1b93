"""Nine small convolutional networks see one patch each of a handwritten digit; training ends in a score record."""

from collegium import agents, collaborate, data, policy, topology

train, test = data.digits(classes=(3, 8))
print(train)
recipe = agents.PatchCNN(channels=(8, 16), hidden=32, training=agents.Training(learning_rate=3e-3, batch_size=32))
scores = agents.train(train, test, recipe, n0=170, seed=0)
print(scores, "epochs:", scores.epochs)

network = policy.uniform(topology.erdos_renyi(9, links=24, seed=7))
for calibrate in (False, True):
    run = collaborate(scores.statistics("test", calibrate=calibrate), network, rounds=20)
    errors = 100 * run.errors(scores.y_test).mean(axis=1)
    print(f"calibrated={calibrate}: alone {errors[0]:.1f} % wrong, after 20 rounds {errors[-1]:.1f} %")
