"""A central round with Flower: nine clients send one number each, the server sends back the mean.

The server and its clients hold gRPC streams, which Flower calls deprecated and which are its quickest way: nobody
sleeps between two looks for a message. Prints the seconds a round takes.
"""

import logging
import multiprocessing
import os
import socket
import sys
import time
import warnings

os.environ["FLWR_TELEMETRY_ENABLED"] = "0"

import numpy as np
from flwr.common import ndarrays_to_parameters, parameters_to_ndarrays
from flwr.compat.client.app import start_client
from flwr.compat.client.numpy_client import NumPyClient
from flwr.server import ServerConfig, start_server
from flwr.server.strategy import FedAvg

CLIENTS, ROUNDS = 9, 20


class Client(NumPyClient):
    """Sends its number, whatever it is told."""

    def __init__(self, number: int) -> None:
        self.number = float(number)  # of integers Flower's average in place is one too

    def fit(self, parameters, config):
        return [np.array([self.number])], 1, {}


class Mean(FedAvg):
    """Flower's own average, with a look at the clock."""

    def aggregate_fit(self, server_round, results, failures):
        assert len(results) == CLIENTS
        assert not failures
        mean, metrics = super().aggregate_fit(server_round, results, failures)
        assert np.allclose(parameters_to_ndarrays(mean), np.mean(range(CLIENTS)))
        times.append(time.perf_counter())
        return mean, metrics


def client(number: int, address: str) -> None:
    logging.disable()
    start_client(server_address=address, client=Client(number).to_client(), insecure=True)


times: list[float] = []
if __name__ == "__main__":
    logging.disable()
    warnings.simplefilter("ignore")
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=client, args=(k, address), daemon=True) for k in range(CLIENTS)]
    for process in processes:
        process.start()
    strategy = Mean(
        fraction_evaluate=0.0, min_fit_clients=CLIENTS, min_available_clients=CLIENTS,
        initial_parameters=ndarrays_to_parameters([np.zeros(1)]),
    )  # fmt: skip
    start_server(server_address=address, config=ServerConfig(num_rounds=1 + ROUNDS), strategy=strategy)
    for process in processes:
        process.join(30)
    sys.stdout.write(f"{(times[-1] - times[0]) / ROUNDS}\n")
