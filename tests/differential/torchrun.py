"""The real torchrun, with the two mends without which Debian's builds of it do not start.

- torch 2.x is built without libuv, and torchrun's own stores ask for it: TCPStore's default is changed.
- torch 1.13 with Python 3.11 loses --redirects and --tee values 0 and 3, because iterating an
  IntFlag no longer yields them: the value is looked up by number.

usage: torchrun.py [--launch] ARGS...        --launch: python -m torch.distributed.launch
"""
import sys

import torch
import torch.distributed as dist

if int(torch.__version__.split(".")[0]) >= 2:

    class TCPStore(dist.TCPStore):
        def __init__(self, *args, **options):
            options.setdefault("use_libuv", False)
            super().__init__(*args, **options)

    dist.TCPStore = TCPStore
else:
    from torch.distributed.elastic.multiprocessing.api import Std

    def from_str(text):
        if ":" not in text:
            return Std(int(text))
        return {int(rank): Std(int(value)) for rank, value in (pair.split(":") for pair in text.split(","))}

    Std.from_str = staticmethod(from_str)

from torch.distributed import launch, run  # noqa: E402  (after the mends)

if __name__ == "__main__":
    arguments = sys.argv[1:]
    chosen = run
    if arguments[:1] == ["--launch"]:
        chosen, arguments = launch, arguments[1:]
    chosen.main(arguments)
