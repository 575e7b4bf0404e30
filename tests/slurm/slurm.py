"""A real Slurm of four nodes on this machine runs the batch scripts of docs/clusters.md and docs/slurm.md, in which drun is told
nothing of the nodes, and others.

usage: slurm.py ROOT BIN_DIR

Skipped (77) without Debian's slurmctld and slurmd, or without the right to make namespaces.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

from small_slurm import LIMIT, Failed, documented_script, expect, greetings, greetings_in, run, with_program

DRUN = "drun --nproc-per-node 2 examples/shell/hello.sh"
HEAD = "#!/bin/sh\n#SBATCH --nodes=4\n#SBATCH --ntasks-per-node=1\n"
# Components of one and of three nodes.
HETERO = "#!/bin/sh\n#SBATCH --nodes=1 --ntasks=1\n#SBATCH hetjob\n#SBATCH --nodes=3 --ntasks=3\n"


def check_ranks(slurm, script):
    # With all that drun would find out said, and without.
    scripts = [documented_script(pathlib.Path(sys.argv[1]), "slurm.md"), script]
    for job in [slurm.submit(each) for each in scripts]:
        code, output = slurm.end(job)
        expect(f"exit code\n{output}", code, "0:0")
        expect("output", greetings_in(output), greetings(2))


def check_steps(slurm, _):
    """What drun takes from Slurm's variables, in every way to start a step."""
    steps = {
        "a step": f"{HEAD}srun {DRUN}\n",
        "a later step": f"{HEAD}srun true\nsrun true\nsrun --preserve-env {DRUN}\n",
        "a step in arbitrary order": HEAD + "printf 'n3\\nn1\\nn4\\nn2\\n' >order\nexport SLURM_HOSTFILE=order\n"
                                            f"srun -m arbitrary {DRUN}\n",
        "a step of a heterogeneous job": f"{HETERO}srun --het-group=0,1 {DRUN}\n",
        "a step with several CPUs": f"{HEAD}#SBATCH --cpus-per-task=2\nsrun {DRUN}\n",
    }
    for what, job in [(what, slurm.submit(script)) for what, script in steps.items()]:
        code, output = slurm.end(job)
        expect(f"exit code of {what}\n{output}", code, "0:0")
        expect(what, greetings_in(output), greetings(4))
        for node in range(4):
            if not re.search(rf"^drun: Slurm: 4 nodes .*, this is node {node} \(SLURM_NODEID\), meeting at n[1-4]:2\d+ ", output, re.M):
                raise Failed(f"{what}: node {node} does not say what it inferred:\n{output}")


def check_scripts(slurm, _):
    """Outside of steps drun starts itself on all nodes."""
    many = "#!/bin/sh\n#SBATCH --nodes=4 --ntasks-per-node=2 --cpus-per-task=3\n"
    hello = "drun examples/shell/hello.sh"
    scripts = {
        "a batch script": (f"{HEAD}{DRUN}\n", "srun --nodes=4 --ntasks=4 --ntasks-per-node=1 --export=ALL --disable-status drun ..."),
        "a batch script of many tasks": (f"{many}{hello}\n", "--ntasks-per-node=1 --cpus-per-task=6 --export=ALL --disable-status drun ..."),
        "the script of a heterogeneous job": (f"{HETERO}{DRUN}\n", "srun --het-group=0-1 --ntasks-per-node=1 --export=ALL --disable-status drun ..."),
        "a script without the environment": (f"{HEAD}#SBATCH --export=NONE\nexport PATH='{slurm.path}'\nexport PET_NPROC_PER_NODE=2\n"
                                             f"{hello}\n", "srun --nodes=4"),
        "a job of all CPUs and no number of tasks": (f"#!/bin/sh\n#SBATCH --nodes=4 --exclusive\n{DRUN}\n",
                                                     "srun --nodes=4 --ntasks=4 --ntasks-per-node=1 --export=ALL --disable-status drun ..."),
        "a job of a task for each GPU": (f"#!/bin/sh\n#SBATCH --nodes=4 --gpus-per-node=2 --ntasks-per-gpu=1\n{hello}\n",
                                         "env -u SLURM_NTASKS_PER_GPU srun --nodes=4 "),
        "a job of a GPU for each task": (f"#!/bin/sh\n#SBATCH --nodes=4 --ntasks-per-node=2 --gpus-per-task=1\n"
                                         f"drun --max-restarts 0 sh -c '[ $SLURM_GPUS_ON_NODE = 2 ] && exec {hello[5:]}'\n",
                                         "env -u SLURM_GPUS_PER_TASK srun --nodes=4 "),
        "a script that was submitted in a step": (f"{HEAD}export SLURM_STEP_ID=0 SLURM_STEP_NODELIST=n1 SLURM_STEP_NUM_NODES=1\n{DRUN}\n",
                                                  "srun --nodes=4 --ntasks=4 --ntasks-per-node=1 --export=ALL --disable-status drun ..."),
        "an elastic job": (f"{HEAD}drun --nnodes 2:4 --rdzv-conf last_call_timeout=60 {DRUN[5:]}\n", "--no-kill --kill-on-bad-exit=0 drun ..."),
    }
    for what, job in [(what, slurm.submit(script)) for what, (script, _) in scripts.items()]:
        code, output = slurm.end(job)
        expect(f"exit code of {what}\n{output}", code, "0:0")
        if what != "an elastic job":  # which may begin before the last node has come
            expect(what, greetings_in(output), greetings(4))
        elif not greetings_in(output):
            raise Failed(f"{what}: no worker has run:\n{output}")
        if scripts[what][1] not in output:
            raise Failed(f"{what} does not say how it starts:\n{output}")
    # All nodes have one token, which nobody has given, and no worker has it in its environment.
    code, output = slurm.end(slurm.submit(f"{HEAD}drun --nproc-per-node 1 sh -c '! env | grep -q TOKEN && drunctl page-key $TORCHELASTIC_RUN_ID'\n"))
    expect(f"exit code of a job with a token\n{output}", code, "0:0")
    keys = re.findall(r"(?m)^[0-9a-f]{64}$", output)
    expect(f"keys of a job with a token\n{output}", (len(keys), len(set(keys))), (4, 1))
    fails = slurm.program("fails.sh", '#!/bin/sh\n[ "$RANK" != 7 ] || exit 7\nexec sleep 1000\n')
    code, output = slurm.end(slurm.submit(f"{HEAD}drun --nproc-per-node 2 {fails}\n"))
    expect(f"exit code of a batch script whose worker fails\n{output}", code, "7:0")
    for words in (["srun", *DRUN.split()], DRUN.split()):
        shell = subprocess.run(["salloc", "--nodes=4", "--ntasks-per-node=1", *words], capture_output=True, text=True, check=False,
                               timeout=LIMIT)
        expect(f"exit code of salloc {words[0]}\n{shell.stderr}", shell.returncode, 0)
        expect(f"salloc {words[0]}", sorted(shell.stdout.splitlines()), greetings(4))


def check_uneven(slurm):
    """What drun names where nodes have different numbers of tasks starts as many workers."""
    uneven = "#!/bin/sh\n#SBATCH --nodes=2 --ntasks=3\n"
    components = "#!/bin/sh\n#SBATCH --nodes=1 --ntasks=1\n#SBATCH hetjob\n#SBATCH --nodes=2 --ntasks-per-node=2\n"
    for what, head, workers in (("uneven tasks", uneven, ["0 of 3", "1 of 3", "2 of 3"]),
                                ("components with several tasks", components, [f"{rank} of 5" for rank in range(5)])):
        code, output = slurm.end(slurm.submit(f"{head}drun examples/shell/hello.sh\n"))
        expect(f"exit code of {what}\n{output}", code, "2:0")
        line = re.search(r": (drun --launcher .*? \.\.\.|srun --het-group=0 .*? \.\.\.);", output)
        if line is None:
            raise Failed(f"{what}: no command line is named:\n{output}")
        code, output = slurm.end(slurm.submit(head + line[1].replace("...", "examples/shell/hello.sh") + "\n"))
        expect(f"exit code of {what}, started as told: {line[1]}\n{output}", code, "0:0")
        expect(what, sorted(re.findall(r"^hello from rank (\d of \d) ", output, re.M)), workers)
    # With a number of workers for all nodes, whichever tasks there are.
    code, output = slurm.end(slurm.submit(f"{uneven}{DRUN}\n"))
    expect(f"exit code of as many on each node\n{output}", code, "0:0")
    expect("as many on each node", greetings_in(output), greetings(2))


def check_refusals(slurm, _):
    refused = {
        "many tasks": ("#!/bin/sh\n#SBATCH --nodes=4 --ntasks-per-node=4\nsrun " + DRUN,
                       "--ntasks-per-node=1 --cpus-per-task=4 drun --nproc-per-node 4 ...;"),
        "more nodes than there are": (f"{HEAD}drun --nnodes 5 {DRUN[5:]}", "Slurm has 4 nodes for this job (SLURM_JOB_NUM_NODES)"),
    }
    for what, job in [(what, slurm.submit(script + "\n")) for what, (script, _) in refused.items()]:
        code, output = slurm.end(job)
        expect(f"exit code of {what}\n{output}", code, "2:0")
        if refused[what][1] not in output or "hello from" in output:
            raise Failed(f"{what} is not refused:\n{output}")
    check_uneven(slurm)
    one = {
        "a batch script of one node": f"#!/bin/sh\n#SBATCH --nodes=1\n{DRUN}\n",
        "a step of one node": f"#!/bin/sh\n#SBATCH --nodes=2\nsrun --nodes=1 --ntasks=1 {DRUN}\n",
        "a batch script that is told so": f"{HEAD}drun --nnodes 1 {DRUN[5:]}\n",
    }
    for what, job in [(what, slurm.submit(script)) for what, script in one.items()]:
        code, output = slurm.end(job)
        expect(f"exit code of {what}\n{output}", code, "0:0")
        expect(what, output.count(" of 2 (local rank "), 2)


def check_launcher(slurm, _):
    """--launcher srun: drun in the batch script starts itself on the nodes, in a tree too; and says what is missing."""
    drun = "drun --launcher srun --nproc-per-node 2 "
    for what, words in {"a batch script": drun, "a batch script, in a tree": f"{drun} --fan-out 1 ", "one node": f"{drun} -H n2 ",
                        "a variable": "export PET_LAUNCHER=srun\ndrun --nproc-per-node 2 "}.items():
        code, output = slurm.end(slurm.submit(f"{HEAD}{words} examples/shell/hello.sh\n"))
        expect(f"exit code of {what}\n{output}", code, "0:0")
        expect(what, greetings_in(output), greetings(1 if what == "one node" else 4))
    # All of a node's CPUs are the workers', whatever the job's tasks have.
    code, output = slurm.end(slurm.submit(f"{HEAD}{drun} sh -c 'echo cpus $(env -u OMP_NUM_THREADS nproc)'\n"))
    expect("CPUs", re.findall(r"^cpus .*$", output, re.M), [f"cpus {os.cpu_count()}"] * 8)
    code, output = slurm.end(slurm.submit(f"{HEAD}{drun} sh -c '[ $RANK != 3 ] || exit 7; exec sleep 1000'\n"))
    expect(f"exit code of a failure\n{output}", code, "7:0")
    expect("reports", output.count("job failed: rank 3 "), 1)
    slurm.expect_nothing_left()
    for what, script, words in (("a step", f"{HEAD}srun --ntasks=4 {drun} true\n", "an srun has started this drun already"),
                                ("a node of others", f"{HEAD}{drun} -H n1,n9 true\n", "error: n9: ")):
        code, output = slurm.end(slurm.submit(script))
        if code == "0:0" or words not in output:
            raise Failed(f"{what} is not refused: {code}\n{output}")
    shell = subprocess.run(["drun", "--launcher", "srun", "true"], capture_output=True, text=True, check=False, timeout=LIMIT)
    expect("exit code outside of a job", shell.returncode, 2)
    expect("outside of a job", shell.stderr, "drun: error: --launcher 'srun': this is no job of Slurm (SLURM_JOB_ID is not set): "
                                             "begin one with salloc or sbatch\n")
    # Nothing outlives a starter that is killed, though the job goes on.
    code, output = slurm.end(slurm.submit(f"{HEAD}{drun} sh -c 'echo runs; exec sleep 1000' >killed.out &\nstarter=$!\n"
                                          "until [ \"$(grep -c runs killed.out)\" = 8 ]; do sleep 0.1; done\nkill -9 $starter\n"
                                          "until ! pidof drun sleep; do sleep 0.1; done\nexit 3\n"))
    expect(f"exit code of a script whose drun was killed\n{output}", code, "3:0")
    slurm.expect_nothing_left()


def check_frameworks(slurm, _):
    """Slurm's variables of a task are true of each worker; and an MPI program runs across the nodes."""
    head = f"{HEAD}srun drun --nproc-per-node 2 "
    names = ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_NPROCS", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE",
             "SLURM_GTIDS", "SLURM_NODEID")
    code, output = slurm.end(slurm.submit(head + "sh -c 'echo \"task " + " ".join(f"${name}" for name in names) + "\"'\n"))
    expect(f"exit code\n{output}", code, "0:0")
    expect("the variables of tasks", sorted(re.findall(r"^task .*$", output, re.M)),
           [f"task {rank} 8 8 8 {rank % 2} 2(x4) {rank // 2 * 2},{rank // 2 * 2 + 1} {rank // 2}" for rank in range(8)])
    if shutil.which("mpicc.mpich") is None:
        print("no MPI program: no mpicc.mpich (apt-get install libmpich-dev)")
        return
    subprocess.run(["mpicc.mpich", "examples/mpi/sum.c", "-o", "sum"], check=True, timeout=LIMIT)
    code, output = slurm.end(slurm.submit(head + "--framework mpi ./sum\n"))
    expect(f"exit code of an MPI program\n{output}", code, "0:0")
    expect("an MPI program", sorted(re.findall(r"^rank \d.*$", output, re.M)), [f"rank {rank} of 8: the sum is 28" for rank in range(8)])


def check_exit_code(slurm, script):
    program = slurm.program("fails.sh", '#!/bin/sh\n[ "$RANK" != 3 ] || exit 7\nexec sleep 1000\n')
    code, output = slurm.end(slurm.submit(with_program(script, program)))
    expect(f"exit code\n{output}", code, "7:0")
    slurm.expect_nothing_left()


if __name__ == "__main__":
    sys.exit(run(__file__, (check_ranks, check_steps, check_scripts, check_refusals, check_launcher, check_frameworks, check_exit_code)))
