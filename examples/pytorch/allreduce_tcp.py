"""The same as allreduce.py, with the address and the rank given by hand: scripts that call
init_process_group(init_method="tcp://...") run under drun unchanged.

    drun --nproc-per-node 4 allreduce_tcp.py
"""
import os

import torch
import torch.distributed as dist


def main():
    address = f"tcp://{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group("gloo", init_method=address, rank=rank, world_size=size)

    total = torch.tensor([float(rank)])
    dist.all_reduce(total)
    assert total.item() == size * (size - 1) / 2, total

    print(f"rank {rank} of {size}: the ranks add up to {total.item():g}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
