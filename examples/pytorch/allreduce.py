"""The smallest PyTorch job: every worker adds its rank to a sum that all of them get.

    drun --nproc-per-node 4 allreduce.py
    drun --nnodes 2 --nproc-per-node 4 --rdzv-endpoint HOST:29500 allreduce.py    (on two machines)
"""
import torch
import torch.distributed as dist


def main():
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()

    total = torch.tensor([float(rank)])
    dist.all_reduce(total)
    assert total.item() == size * (size - 1) / 2, total

    print(f"rank {rank} of {size}: the ranks add up to {total.item():g}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
