"""Runs the same small jobs under a real torchrun and under drun, and compares the results field by field.

usage: differential.py BIN_FOLDER [--release host|trixie|forky|recorded]... [--case NAME]... [--record]

BIN_FOLDER holds drun and drun-launch. Releases that are not there are named and left out; with none the exit
code is 77, with a difference that allowed.py does not name it is 1. The table at the end counts.

"recorded" compares drun with what torchrun 2.14 did when --record was given, which needs no PyTorch but for the
cases whose workers import it: tests/golden/torchrun/results-2.14.json.
"""
import argparse
import concurrent.futures
import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import threading
import traceback

from allowed import ALLOWED
from cases import CASES, ONE_AT_A_TIME
from launchers import ROOT, Job, Release, debian_12, newer

MISSING = "(none)"
FIXED_PORT = threading.Lock()
RECORDED = ROOT / "tests" / "golden" / "torchrun" / "results-2.14.json"
WITH_TORCH = {"exception_under_record"}  # their workers import it


def without_places(text):
    """The same on every machine."""
    host = socket.gethostname().split(".")[0]
    return re.sub(rf"\b({re.escape(host)}|localhost)\b", "<host>", text.replace(str(ROOT), "<root>"))


def outcome(function, launcher, release, folder):
    job = Job(launcher, release, folder)
    try:
        return {name: without_places(str(value)) for name, value in function(job).items()}
    except Exception:
        said = "".join(f"--- agent {n}:\n" + "\n".join(agent.out + agent.err) + "\n" for n, agent in enumerate(job.agents))
        return {"(the case)": "failed: " + traceback.format_exc() + said}
    finally:
        job.close()


def reason_for(release, name, field, theirs, ours):
    for entry in ALLOWED:
        if entry.covers(release.version, name, field, theirs, ours):
            return entry
    return None


def compare(release, name, folder, recorded, report):
    """(equal, allowed, different), the allowed entries that were needed, and what torchrun did."""
    function = CASES[name][0]
    if recorded is not None:
        theirs = recorded[name]
    else:
        with FIXED_PORT if name in ONE_AT_A_TIME else contextlib.nullcontext():
            theirs = outcome(function, "torchrun", release, folder)
    ours = outcome(function, "drun", release, folder)
    equal, allowed, different, needed = 0, 0, 0, set()
    for field in sorted(set(theirs) | set(ours)):
        torchrun, drun = theirs.get(field, MISSING), ours.get(field, MISSING)
        entry = None
        if torchrun == drun and field != "(the case)":
            equal += 1
            continue
        entry = reason_for(release, name, field, torchrun, drun)
        if entry:
            allowed += 1
            needed.add(entry)
            continue
        different += 1
        report(f"  {name}: {field}\n    torchrun: {torchrun}\n    drun:     {drun}")
    print(f"  {'different' if different else 'ok':9} {name}", flush=True)
    return equal, allowed, different, needed, theirs


def find_release(name):
    """A Release, or why there is none."""
    host = debian_12()
    if name == "recorded":
        return Release("recorded", (2, 14), [], host.python if host else sys.executable)
    if name == "host":
        return host or "no python3 with torch: apt-get install python3-torch"
    return newer(name) or f"no such folder, or not root: scripts/torch-chroot create {name}"


def in_a_network_of_its_own():
    """Continues where only loopback is, so that nobody else has the fixed ports, on a machine that can resolve its
    own name, without which torchrun 2.x waits for ten minutes."""
    if os.environ.get("DRUN_DIFFERENTIAL_NETWORK") == "own":
        socket.sethostname("localhost")
    else:
        words = ["unshare", "--net", "--uts"] + ([] if os.geteuid() == 0 else ["--user", "--map-root-user"])
        if subprocess.run(words + ["ip", "link", "set", "lo", "up"], capture_output=True, check=False).returncode == 0:
            os.environ["DRUN_DIFFERENTIAL_NETWORK"] = "own"
            os.execvp("unshare", words + ["sh", "-c", 'ip link set lo up && exec "$@"', "sh", sys.executable] + sys.argv)


def undocumented():
    """Allowed differences that docs/compatibility.md has no row for."""
    rows = {line.split("|")[1].strip() for line in (ROOT / "docs" / "compatibility.md").read_text(encoding="utf-8").splitlines()
            if line.startswith("| ")}
    return sorted({entry.row for entry in ALLOWED} - rows)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--release", action="append", choices=["recorded", "host", "trixie", "forky"])
    parser.add_argument("--case", action="append", choices=sorted(CASES))
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--jobs", type=int, default=max(2, os.cpu_count() or 1))
    options = parser.parse_args()
    in_a_network_of_its_own()
    failed = False
    for row in undocumented():
        print(f"allowed.py: docs/compatibility.md has no row {row!r}")
        failed = True
    table, needed = [], set()
    for name in options.release or ["recorded", "host", "trixie", "forky"]:
        release = find_release(name)
        if isinstance(release, str):
            print(f"{name}: not run: {release}")
            continue
        recorded = json.loads(RECORDED.read_text(encoding="utf-8")) if name == "recorded" else None
        names = [n for n in options.case or CASES if CASES[n][1] <= release.version]
        if recorded is not None and debian_12() is None:
            names = [n for n in names if n not in WITH_TORCH]
        print(f"torch {release.shown} ({name}): {len(names)} cases", flush=True)
        lines = []
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            counts = list(pool.map(lambda n: compare(release, n, options.folder, recorded, lines.append), names))
        if lines:
            print("\n".join(lines))
        if options.record and release.version == (2, 14) and recorded is None:
            whole = json.loads(RECORDED.read_text(encoding="utf-8")) if RECORDED.exists() else {}
            whole.update((n, count[4]) for n, count in zip(names, counts))
            RECORDED.write_text(json.dumps(whole, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        equal, allowed, different = (sum(count[i] for count in counts) for i in range(3))
        for count in counts:
            needed |= count[3]
        table.append((f"{release.shown} {name}", len(names), equal, allowed, different))
        failed = failed or different > 0 or (not options.case and equal < 5 * len(names))  # comparing nothing is no success
    if not options.case and len(table) == 4:
        for entry in (entry for entry in ALLOWED if entry not in needed):
            print(f"allowed.py: not needed any more: {entry.row}: {entry.field}")
            failed = True
    print(f"\n{'torch':16} {'cases':>6} {'equal':>7} {'allowed':>8} {'different':>10}")
    for row in table:
        print(f"{row[0]:16} {row[1]:6} {row[2]:7} {row[3]:8} {row[4]:10}")
    if not table:
        return 77
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
