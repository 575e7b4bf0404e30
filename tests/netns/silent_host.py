#!/usr/bin/env python3
"""Two hosts, as network namespaces of this test's own: an elastic job over a real network that then goes away.

    silent_host.py --bin BUILD/bin

The agents meet at the first host's address, workers see that address as MASTER_ADDR, and each reaches the other host.
Then the link of the second host goes down: no packet says so. Within the keep-alive limit the first host must go on
alone, in a new round that does not spend a restart, and the second must end its workers and leave with exit code 125.
Exit code 77: namespaces cannot be made here.
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from hosts import Hosts, ended, kill_all, wait_for

WORKER = """
echo "$DRUN_ROUND $RANK $WORLD_SIZE $MASTER_ADDR $TORCHELASTIC_RESTART_COUNT" > "$OUT/.$$" && mv "$OUT/.$$" "$OUT/$$"
trap 'rm -f "$OUT/$$"; exit 143' TERM
while :; do sleep 0.05; done
"""


def said(directory):
    """What the living workers of one host have said, as {pid: words}."""
    result = {}
    for entry in os.listdir(directory):
        if entry.isdigit() and pathlib.Path(f"/proc/{entry}").exists():
            try:
                result[int(entry)] = (directory / entry).read_text().split()
            except OSError:
                pass
    return result


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    drun = pathlib.Path(parser.parse_args().bin).resolve() / "drun"
    hosts = Hosts()
    directory = pathlib.Path(tempfile.mkdtemp(prefix="drun-netns-"))
    agents = []
    try:
        out = [directory / "a", directory / "b"]
        for host in (0, 1):
            out[host].mkdir()
            agents.append(subprocess.Popen(
                [*hosts.on(host), drun, "--nnodes", "1:2", "--nproc-per-node", "2",
                 "--max-restarts", "1", "--rdzv-endpoint", f"{hosts.addresses[0]}:29500", "--shutdown-timeout", "2",
                 "sh", "-c", WORKER],
                env=dict(os.environ, OUT=str(out[host])), stdin=subprocess.DEVNULL))
        wait_for("both hosts run one round of four", 60,
                 lambda: len(said(out[0])) == 2 and len(said(out[1])) == 2
                 and {w[2] for d in out for w in said(d).values()} == {"4"})
        words = [w for d in out for w in said(d).values()]
        assert {w[3] for w in words} == {hosts.addresses[0]}, words
        assert sorted(w[1] for w in said(out[0]).values()) == ["0", "1"], "rank 0 is where the endpoint is"
        first_round = int(words[0][0])

        hosts.link(1, "down")
        shrunk = wait_for("the first host goes on alone", 20,
                          lambda: {(w[2], w[4]) for w in said(out[0]).values()} == {("2", "0")}
                          and all(int(w[0]) > first_round for w in said(out[0]).values()))
        code = ended(agents[1])
        assert code == 125, f"the host that was cut off ended with {code}"
        assert not said(out[1]), "workers of the host that was cut off are alive"
        assert agents[0].poll() is None

        agents[0].terminate()
        code = ended(agents[0])
        assert code == 143, f"the first host ended with {code}"
        assert not said(out[0]), "workers are left"
        print(f"the first host went on alone {shrunk:.1f} s after the link went down")
        return 0
    except AssertionError as problem:
        print(f"failed: {problem}; a: {said(directory / 'a')} b: {said(directory / 'b')}")
        return 1
    finally:
        kill_all(agents)
        hosts.close()
        shutil.rmtree(directory, ignore_errors=True)


sys.exit(main())
