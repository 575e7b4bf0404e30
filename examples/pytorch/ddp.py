"""Data-parallel training that survives the loss of a worker: a snapshot after every epoch, written
to a temporary name and then renamed, so that there is never half a snapshot; at the start the last
one is loaded. When a worker dies, drun starts all of them again, and training goes on from there.

    drun --nproc-per-node 4 --max-restarts 3 ddp.py --epochs 20 --snapshot /tmp/ddp.pt
"""
import argparse
import os
import signal

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def data(rank, size, samples=512):
    """This worker's share of a made-up problem: y = 3a - 2b + 1."""
    generator = torch.Generator().manual_seed(7)
    x = torch.rand(samples, 2, generator=generator)
    y = x @ torch.tensor([[3.0], [-2.0]]) + 1.0
    return x[rank::size], y[rank::size]


def save(path, epoch, model, optimizer):
    temporary = path + ".new"
    torch.save({"epoch": epoch, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, temporary)
    os.replace(temporary, path)


def load(path, model, optimizer):
    """The first epoch that is still to be done."""
    if not os.path.exists(path):
        return 0
    snapshot = torch.load(path)
    model.load_state_dict(snapshot["model"])
    optimizer.load_state_dict(snapshot["optimizer"])
    return snapshot["epoch"] + 1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--snapshot", default="snapshot.pt", help="must be visible to all nodes")
    parser.add_argument("--kill-at", type=int, help="the last rank dies before this epoch, once")
    options = parser.parse_args()

    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    restarts = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))

    torch.manual_seed(0)
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    first = load(options.snapshot, model, optimizer)
    if rank == 0:
        print(f"start at epoch {first} of {options.epochs}, {size} workers, restart {restarts}", flush=True)

    parallel = DistributedDataParallel(model)
    x, y = data(rank, size)
    for epoch in range(first, options.epochs):
        if epoch == options.kill_at and rank == size - 1 and restarts == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(parallel(x), y)
        loss.backward()  # averages the gradients over all workers
        optimizer.step()
        if rank == 0:
            save(options.snapshot, epoch, model, optimizer)
            print(f"epoch {epoch} loss {loss.item():.6f}", flush=True)
        dist.barrier()  # nobody begins an epoch whose predecessor is not saved

    if rank == 0:
        print(f"done: {[round(w, 2) for w in model.weight[0].tolist()]} + {model.bias.item():.2f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
