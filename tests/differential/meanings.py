"""What torchrun takes command lines for: its own code as far as the launch itself.

usage: meanings.py <LINES >MEANINGS     with a Python that has torch; both are JSON. A machine with 8 GPUs is pretended.
LINES: [{"launch": bool, "arguments": [...], "variables": {...}}]; an answer is null where torchrun refuses the line.
"""
import contextlib
import io
import json
import os
import sys
import warnings

import torch
from torch.distributed import launch, run

GPUS = 8


class Launched(Exception):
    pass


def elastic_launch(config, entrypoint):
    def call(*arguments):
        raise Launched({
            "nodes": f"{config.min_nodes}:{config.max_nodes}",
            "workers": config.nproc_per_node,
            "backend": config.rdzv_backend,
            "endpoint": config.rdzv_endpoint,
            "id": config.run_id,
            "role": config.role,
            "restarts": config.max_restarts,
            "node rank": config.rdzv_configs.get("rank"),
            "command": [entrypoint, *arguments],
        })

    return call


def meaning(line):
    own = dict(os.environ)
    os.environ.update(line["variables"])
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            (launch if line["launch"] else run).main(line["arguments"])
    except Launched as launched:
        found = launched.args[0]
    except (SystemExit, Exception):
        found = None
    os.environ.clear()
    os.environ.update(own)
    return found


def main():
    warnings.simplefilter("ignore")
    os.environ.pop("TORCHELASTIC_ERROR_FILE", None)
    torch.cuda.is_available = lambda: True
    torch.cuda.device_count = lambda: GPUS
    if hasattr(torch, "accelerator"):
        torch.accelerator.is_available = torch.cuda.is_available
        torch.accelerator.device_count = torch.cuda.device_count
        torch.accelerator.current_accelerator = lambda *_, **__: torch.device("cuda")
    run.elastic_launch = elastic_launch
    json.dump([meaning(line) for line in json.load(sys.stdin)], sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
