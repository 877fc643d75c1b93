"""DISROPT's consensus on the 3×3 grid, nine MPI processes; the first prints the seconds a round takes.

mpirun --oversubscribe -np 9 python benchmarks/neighbours/disropt_consensus.py
"""

import time

import numpy as np
from disropt.agents import Agent
from disropt.algorithms.consensus import Consensus
from mpi4py import MPI

ROUNDS, REPEATS = 200, 5


def neighbours(k: int) -> list[int]:
    row, column = divmod(k, 3)
    near = [(row - 1, column), (row, column - 1), (row, column + 1), (row + 1, column)]
    return [3 * r + c for r, c in near if 0 <= r < 3 and 0 <= c < 3]


world = MPI.COMM_WORLD
me = world.Get_rank()
near = neighbours(me)
agent = Agent(in_neighbors=near, out_neighbors=near, in_weights=dict.fromkeys(near, 1 / (len(near) + 1)))
figures = []
for _ in range(1 + REPEATS):
    consensus = Consensus(agent, np.array([float(me)]))
    world.Barrier()
    begun = time.perf_counter()
    consensus.run(iterations=ROUNDS)
    figures.append((time.perf_counter() - begun) / ROUNDS)

A = np.array([[(l == k or l in neighbours(k)) / (len(neighbours(k)) + 1) for k in range(9)] for l in range(9)])
assert np.allclose(consensus.x, (np.arange(9.0) @ np.linalg.matrix_power(A, ROUNDS))[me])
slowest = [max(column) for column in zip(*world.allgather(figures), strict=True)]
if me == 0:
    print(min(slowest[1:]))
