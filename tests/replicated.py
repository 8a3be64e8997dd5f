"""Trains one model in two processes of PyTorch; each writes what it has.

Run by `test_distribution` in a process of its own. The guide shows the parts
between the marks.
"""

import os
import socket
import sys
from pathlib import Path

import keras
import numpy as np
import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

from keras_gating import layers
from tests.utils import normal
from tests.utils import to_numpy

X, Y = normal(4, 5, 8), normal(4, 5, 8, seed=1)
STEPS = 2
PROCESSES = 2


def make_model():
    inputs = keras.Input(X.shape[1:])
    x = layers.GatedAttention(2, 4, gate_site=("output", "value"))(
        inputs, inputs
    )
    x = inputs + x + layers.GatedFeedForward(8)(x)
    x = layers.GatedAttentionUnit(key_dim=4, norm_first=True)(x)
    return keras.Model(inputs, x)


# --8<-- [start:step]
def take_step(model, optimizer, call, x, y):
    """One step; `call` is the model or what it is wrapped in."""
    model.zero_grad()
    loss = keras.ops.mean(keras.losses.mean_squared_error(y, call(x)))
    loss.backward()
    weights = model.trainable_weights
    gradients = [weight.value.grad for weight in weights]
    with torch.no_grad():
        optimizer.apply(gradients, weights)
    return gradients


# --8<-- [end:step]


def arrays(tensors):
    return [to_numpy(tensor) for tensor in tensors]


def train(model, call, x, y):
    """Weights before, gradients of each step, weights after."""
    optimizer = keras.optimizers.SGD(0.1, momentum=0.9)
    collected = arrays(model.trainable_weights)
    for _ in range(STEPS):
        collected += arrays(take_step(model, optimizer, call, x, y))
    return collected + arrays(model.trainable_weights)


def work(rank, path):
    os.environ["RANK"] = str(rank)
    # --8<-- [start:main]
    distributed.init_process_group("gloo")  # "nccl" on GPUs
    rank, size = distributed.get_rank(), distributed.get_world_size()
    keras.utils.set_random_seed(rank)
    model = make_model()
    # From here on all processes have the weights of the first one.
    parallel = DistributedDataParallel(model)
    part = slice(rank, None, size)
    x, y = torch.tensor(X[part]), torch.tensor(Y[part])
    # --8<-- [end:main]
    results = train(model, parallel, x, y)
    np.savez(Path(path) / f"{rank}.npz", *results)
    distributed.destroy_process_group()


def main(path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # What `torchrun` sets.
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = str(port)
    os.environ["WORLD_SIZE"] = str(PROCESSES)
    torch.set_num_threads(1)
    # What Keras imports with a first model is imported once, as all else is.
    make_model()
    torch.multiprocessing.start_processes(
        work, (path,), PROCESSES, start_method="fork"
    )


if __name__ == "__main__":
    main(sys.argv[1])
