"""Runs a script with TCPStore clients that do not ask for libuv, which Debian's torch 2.x was built
without. Everything else is the script's and torch's own.

usage: without_libuv.py SCRIPT [ARGS...]
"""
import functools
import runpy
import sys

import torch.distributed as dist

rendezvous = sys.modules["torch.distributed.rendezvous"]  # the module, not the function of that name
rendezvous.TCPStore = functools.partial(dist.TCPStore, use_libuv=False)

sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
