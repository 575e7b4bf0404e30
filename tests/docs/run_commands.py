"""Runs the commands of the documents, so that they stay true.

usage: run_commands.py ROOT BIN_DIR

In README.md, docs/ and examples/, every block fenced as ```sh is run by sh -eu in a scratch folder with examples/ in it and BIN_DIR first
in PATH. A ```text block that follows directly lists lines that must be in its output; a line "..." stands for lines left out,
"..." within a line for any text. ```sh torch
needs PyTorch, ```sh mpich MPICH's compiler, ```sh tree is run in the tree itself, ```sh fails=N must exit with N, ```sh slurm is the script of a Slurm job, whose commands are
stand-ins that start its nodes on this machine; in ```sh ssh a stand-in for ssh does, and node1 to node4 are addresses of it. Blocks of other kinds are for reading only. The default
ports become free ones, so that tests do not meet on them.
"""
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile

TIME_LIMIT = 400


def blocks(text):
    """(line, words of the info string, body, lines expected) of each ```sh block."""
    found = list(re.finditer(r"^```([^\n`]*)\n(.*?)^```$", text, re.M | re.S))
    for index, block in enumerate(found):
        words = block[1].split()
        if not words or words[0] != "sh":
            continue
        expected = []
        if index + 1 < len(found):
            after = found[index + 1]
            if after[1].strip() == "text" and not text[block.end():after.start()].strip():
                expected = after[2].splitlines()
        yield text.count("\n", 0, block.start()) + 1, words[1:], block[2], expected


def python_with_torch():
    check = "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)"
    for python in (os.environ.get("PYTHON_EXEC"), shutil.which("python3"), "/usr/bin/python3"):
        if python and subprocess.run([python, "-c", check], check=False).returncode == 0:
            return python
    return None


def with_free_ports(body, expected):
    """Both with the default ports replaced by ones that are held for this block and can be bound by drun."""
    held = []
    for port in ("29500", "29400"):
        if port in body:
            holder = socket.socket(socket.AF_INET6)
            holder.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            holder.bind(("::", 0))
            held.append(holder)
            own = str(holder.getsockname()[1])
            body = body.replace(port, own)
            expected = [line.replace(port, own) for line in expected]
    return body, expected, held


SLURM = {
    "scontrol": """case $1 in
  show) [ "$2 $3" = "hostnames $SLURM_JOB_NODELIST" ] && seq -f 127.0.0.%g "$SLURM_JOB_NUM_NODES" ;;
  requeue) echo "requeue $2" ;;
  *) exit 1 ;;
esac""",
    "squeue": "date -d '+1 day' +%Y-%m-%dT%H:%M:%S",
    "srun": """while case $1 in -*) true ;; *) false ;; esac; do shift; done
export SLURM_STEP_ID=0 SLURM_STEP_NUM_NODES="$SLURM_JOB_NUM_NODES" SLURM_STEP_NUM_TASKS="$SLURM_JOB_NUM_NODES"
export SLURM_STEP_NODELIST="$SLURM_JOB_NODELIST"
for node in $(seq 0 $((SLURM_JOB_NUM_NODES - 1))); do SLURM_NODEID=$node SLURM_PROCID=$node "$@" & nodes="${nodes-} $!"; done
for node in $nodes; do wait "$node" || exit; done""",
}


def in_slurm(folder, environment, body):
    """The environment of a batch script, with stand-ins for Slurm's commands."""
    commands = pathlib.Path(folder, "slurm")
    commands.mkdir(exist_ok=True)
    for name, text in SLURM.items():
        (commands / name).write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        (commands / name).chmod(0o755)
    nodes = re.search(r"^#SBATCH --nodes=(\d+)$", body, re.M)[1]
    return {**environment, "PATH": f"{commands}{os.pathsep}{environment['PATH']}", "SLURM_JOB_ID": "4711",
            "SLURM_JOB_NUM_NODES": nodes, "SLURM_JOB_NODELIST": f"127.0.0.[1-{nodes}]",
            "PET_RDZV_CONF": "join_timeout=60"}  # of a spare that comes when job and store have gone


SSH = """while case $1 in -[Fp]) shift ;; -*) true ;; *) false ;; esac; do shift; done
[ "$1" != node9 ] || { echo "ssh: connect to host node9 port 22: Connection refused" >&2; exit 255; }
shift
exec sh -c "$*"
"""


def with_ssh(folder, environment, body, expected):
    """All three, where ssh leads to this machine."""
    commands = pathlib.Path(folder, "ssh")
    commands.mkdir(exist_ok=True)
    (commands / "ssh").write_text(f"#!/bin/sh\n{SSH}\n", encoding="utf-8")
    (commands / "ssh").chmod(0o755)

    def addresses(text):
        return re.sub(r"\bnode([1-4])\b", lambda node: f"127.0.0.{int(node[1]) + 1}", text)

    return ({**environment, "PATH": f"{commands}{os.pathsep}{environment['PATH']}"}, addresses(body),
            [addresses(line) for line in expected])


def run(body, held, folder, environment, status):
    """None, or what went wrong; and the output."""
    process = subprocess.Popen(["sh", "-euc", body], cwd=folder, env=environment, text=True,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, start_new_session=True)
    try:
        output, _ = process.communicate(timeout=TIME_LIMIT)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        return f"still running after {TIME_LIMIT} s", process.communicate()[0]
    finally:
        for holder in held:
            holder.close()
    if process.returncode != status:
        return f"exit code {process.returncode}, not {status}", output
    return None, output


def check_page(root, page, environment, python):
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(root / "examples", pathlib.Path(folder, "examples"))
        for line, words, body, expected in blocks(page.read_text(encoding="utf-8")):
            where = f"{page.relative_to(root)}:{line}"
            if "torch" in words and not python:
                print(f"{where}: not run: no python3 with torch (apt-get install python3-torch)")
                continue
            if "mpich" in words and not shutil.which("mpicc.mpich"):
                print(f"{where}: not run: no mpicc.mpich (apt-get install libmpich-dev)")
                continue
            status = next((int(word[6:]) for word in words if word.startswith("fails=")), 0)
            own = in_slurm(folder, environment, body) if "slurm" in words else environment
            if "ssh" in words:
                own, body, expected = with_ssh(folder, own, body, expected)
            body, expected, held = with_free_ports(body, expected)
            problem, output = run(body, held, root if "tree" in words else folder, own, status)
            missing = [text for text in expected if text != "..." and not any(
                re.fullmatch(re.escape(text).replace(r"\.\.\.", ".*"), line) for line in output.splitlines())]
            fixed_unit = [text for text in expected if re.search(r"\.\.\. (ms|s|min)\b", text)]
            if not problem and fixed_unit:
                problem = f"the unit of a duration depends on the machine: leave it out with the figure: {fixed_unit}"
            if not problem and missing:
                problem = f"these lines are missing from the output: {missing}"
            print(f"{where}: {problem or 'ok'}")
            if problem:
                failures += 1
                print(body + "--- output:\n" + output)
    return failures


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    python = python_with_torch()
    environment = {name: value for name, value in os.environ.items()
                   if not re.match(r"PET_|SLURM_|TORCHELASTIC_|MASTER_|RANK$|WORLD_SIZE$", name)}
    environment["PATH"] = sys.argv[2] + os.pathsep + environment["PATH"]
    environment["GLOO_SOCKET_IFNAME"] = "lo"  # this machine's name need not resolve
    if python:
        environment["PYTHON_EXEC"] = python
    pages = [root / "README.md", *sorted((root / "docs").rglob("*.md")),
             *sorted((root / "examples").rglob("*.md"))]
    failures = sum(check_page(root, page, environment, python) for page in pages)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
