"""Push-sum and running sums, compiled, over perfect and lossy links: what the rules do, number for number."""

import numpy as np
from numpy.typing import NDArray

from collegium import links
from collegium._util.randomness import U32
from collegium.kernels.arithmetic import take, turn
from collegium.kernels.averaging import Arrays, arrays
from collegium.kernels.job import Job, Recorded
from collegium.kernels.threads import spread, threads
from collegium.protocol.base import message_width
from collegium.protocol.push_sum import LEAST

Doubles = NDArray[np.float64]


def run(job: Job, totals: bool) -> Recorded:
    """All rounds over a policy; totals: messages are running sums, else shares."""
    (n, K, d), plain = job.scores.shape, arrays(job._replace(scores=job.scores[:, :, :1]))
    w = message_width(d)
    z = np.ones((w + 1, K, n))
    z[:w] = job.scores[:, :, :w].transpose(2, 1, 0)
    given = np.zeros_like(z)
    taken = np.zeros((len(plain.indices) if totals else 0, w + 1, n))
    indptr, shares = plain.indptr[0], (1 + plain.audience[0])[:, None]
    senders, receivers = plain.indices.astype(np.int64), np.repeat(np.arange(K), np.diff(indptr.astype(np.int64)))
    key0, key1 = links.keys_of(plain.loss_seed, job.ids)
    salt0 = salt1 = np.zeros(0, np.uint32)
    statistics = np.empty((1 if job.final else job.rounds + 1, n, K, d))

    def note(page: Doubles) -> None:
        turn((z[:w] / np.maximum(z[w], 1e-300)).reshape(w * K, n), n, page, 0)

    note(statistics[0])
    for t in range(1, job.rounds + 1):
        share, little = z / shares, z[w] < LEAST
        if little.any():
            share, z = np.where(little, 0.0, share), np.where(little, z, share)
        else:
            z = share.copy()
        given = given + share if totals else share
        if plain.loss:
            salt0, salt1 = links.salts_of(senders, receivers, np.array([t]))
        _round(plain, z, given, taken, (key0, key1, salt0, salt1))
        if not job.final:
            note(statistics[t])
    if job.final:
        note(statistics[0])
    return Recorded(statistics, np.full((job.rounds, n), plain.audience.sum()), None)


def _round(job: Arrays, z: Doubles, sent: Doubles, taken: Doubles, words: tuple[U32, ...]) -> None:
    """Everybody takes what arrives, the agents shared out over the threads."""

    def listen(lo: int, hi: int) -> None:
        take(lo, hi, z, sent, taken, job.indptr[0], job.indices, job.loss, *words)

    spread(listen, job.size, -(-job.size // (threads() * 4)), work=2 * len(z) * job.work)
