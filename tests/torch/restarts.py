"""A job that loses rank 1 once, and says whether the store of the restart is a fresh one."""
import os
import signal

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d

dist.init_process_group("gloo")
rank, restart = dist.get_rank(), os.environ["TORCHELASTIC_RESTART_COUNT"]
store = distributed_c10d._get_default_store()
found = store.check([f"of rank {rank} in round 0"])
store.set(f"of rank {rank} in round {restart}", "here")
total = torch.tensor([float(rank)])
dist.all_reduce(total)
print(f"rank {rank} restart {restart}: sum {total.item():g}, {'an old' if found else 'a fresh'} store", flush=True)
if restart == "0":
    dist.barrier()  # all have said it
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    signal.pause()
dist.destroy_process_group()
