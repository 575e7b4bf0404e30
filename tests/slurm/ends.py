"""How jobs of a real Slurm of four nodes end: told before the time limit, interrupted, put back into the queue, cancelled in every phase.

usage: ends.py ROOT BIN_DIR

Skipped (77) without Debian's slurmctld and slurmd, or without the right to make namespaces.
"""
import os
import pty
import re
import select
import subprocess
import sys
import time

from small_slurm import LIMIT, Failed, expect, run, wait_for, with_program

HEAD = "#!/bin/sh\n#SBATCH --nodes=4\n#SBATCH --ntasks-per-node=1\n"


def check_warning(slurm, _):
    """The workers of all nodes are told before the time limit, which this Slurm may not tell by itself."""
    program = slurm.program("saves.sh", '#!/bin/sh\ntrap "echo saved $RANK; exit 0" USR1\necho "ready $RANK"\n'
                                        "while :; do sleep 0.1; done\n")
    script = f"""{HEAD}#SBATCH --time=1
export DRUN_JOB_END_TIME=$(date -d "$(squeue -h -j "$SLURM_JOB_ID" -o %e)" +%s)
echo "end $DRUN_JOB_END_TIME"
"""
    jobs = {
        "a batch script": script + f"drun --warn-before USR1@55 --nproc-per-node 2 {program}\n",
        # As newer versions of Slurm have it.
        "a step": script + 'SLURM_JOB_END_TIME=$DRUN_JOB_END_TIME\nunset DRUN_JOB_END_TIME\nexport SLURM_JOB_END_TIME\n'
                           f"srun drun --warn-before USR1@55 --nproc-per-node 2 {program}\n",
    }
    for what, job in [(what, slurm.submit(script)) for what, script in jobs.items()]:
        code, output = slurm.end(job)
        expect(f"exit code of {what}\n{output}", code, "0:0")
        for word in ("ready", "saved"):
            expect(f"{what}: {word}", sorted(re.findall(rf"^{word} \d$", output, re.M)), [f"{word} {rank}" for rank in range(8)])
        expect(f"{what}: lines that tell of it\n{output}",
               len(re.findall(r"^drun: the job ends in 5\d s: SIGUSR1 to all workers$", output, re.M)), 1)


def check_signal(slurm, _):
    """What Slurm sends to the tasks of a job, as --signal does, reaches the workers, whoever has started the agents."""
    program = slurm.program("saves.sh", '#!/bin/sh\ntrap "echo saved $RANK; exit 0" USR1\necho "ready $RANK"\n'
                                        "while :; do sleep 0.1; done\n")
    for what in ("drun", "drun --launcher srun"):
        job = slurm.submit(f"{HEAD}{what} --nproc-per-node 2 {program}\n")
        wait_for(f"{what}: workers", lambda job=job: slurm.output(job).count("ready ") == 8)
        subprocess.run(["scancel", "--signal=USR1", job], check=True, timeout=LIMIT)
        code, output = slurm.end(job)
        expect(f"exit code of {what}\n{output}", code, "0:0")
        expect(f"{what}: saved", sorted(re.findall(r"^saved \d$", output, re.M)), [f"saved {rank}" for rank in range(8)])


def check_interrupt(slurm, _):
    """One Ctrl-C ends a job that drun has started itself, as any of drun's."""
    program = slurm.program("runs.sh", '#!/bin/sh\necho "ready $RANK"\nexec sleep 1000\n')
    process, terminal = pty.fork()
    if process == 0:
        os.execvp("salloc", ["salloc", "--nodes=2", "--ntasks-per-node=1", "drun", program])
    output, pressed, deadline = b"", False, time.monotonic() + LIMIT
    while time.monotonic() < deadline:
        if not select.select([terminal], [], [], 1)[0]:
            continue
        try:
            output += os.read(terminal, 4096)
        except OSError:  # nobody has it open any more
            break
        if not pressed and output.count(b"ready ") == 2:
            pressed = os.write(terminal, b"\x03") == 1
    else:
        os.kill(process, 9)
    status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    expect(f"exit code after Ctrl-C\n{output.decode(errors='replace')}", status, 130)
    slurm.expect_nothing_left()


def check_requeue(slurm, _):
    """A job that Slurm starts again has the same number, an id and log folders of its own; one that must not be says so."""
    program = slurm.program("once.sh", '#!/bin/sh\necho "run ${SLURM_RESTART_COUNT:-0} id $TORCHELASTIC_RUN_ID"\n'
                                       '[ -n "${SLURM_RESTART_COUNT-}" ] || exit 5\n')
    script = f"""{HEAD}#SBATCH --requeue
drun --nproc-per-node 1 --no-requeue-on 1-4 --log-dir logs --tee 1 {program} && exit
code=$?
[ "$code" = 93 ] || scontrol requeue "$SLURM_JOB_ID"
exit "$code"
"""
    hopeless = slurm.program("hopeless.sh", "#!/bin/sh\nexit 3\n")
    again = slurm.submit(script)
    never = slurm.submit(script.replace(str(program), str(hopeless)))
    code, output = slurm.end(never)
    expect(f"exit code of a job that must not be put back\n{output}", code, "93:0")
    expect("its starts", slurm.show(never, "Restarts"), "0")
    wait_for("the second run", lambda: slurm.show(again, "Restarts") == "1" and slurm.show(again, "JobState") == "COMPLETED")
    output = slurm.output(again)
    expect(f"runs\n{output}", sorted(set(re.findall(r"run \d id .*$", output, re.M))),
           [f"run 0 id {again}.0", f"run 1 id {again}.0.1"])
    folders = {path.name.rsplit("_", 1)[0] for path in (slurm.folder / "logs").glob(f"{again}.*")}
    expect("log folders of the two runs", folders, {f"{again}.0", f"{again}.0.1"})


def check_saving(slurm, script):
    """scancel gives the workers their SIGTERM."""
    # Slurm signals every process of the step, one after the other: the end of sleep must not be the worker's.
    program = slurm.program("saves.sh", f'#!/bin/sh\ntrap "echo saved >{slurm.folder}/saved.$RANK; exit 0" TERM\n'
                                        f'echo "ready $RANK"\nwhile :; do sleep 1000 & wait; done\n')
    job = slurm.submit(with_program(script, program))
    wait_for("four workers", lambda: slurm.output(job).count("ready ") == 4)
    subprocess.run(["scancel", job], check=True, timeout=LIMIT)
    slurm.end(job)
    slurm.expect_nothing_left()
    expect("ranks that had time to save", sorted(path.name for path in slurm.folder.glob("saved.*")),
           [f"saved.{rank}" for rank in range(4)])


def check_cancel(slurm, _):
    """scancel leaves neither processes nor files, whatever the job is doing."""
    folder = slurm.folder / "tmp"
    killed = slurm.folder / "killed"
    for each in (folder, killed):
        each.mkdir()
    # One with children that have left its process group, and one that does not end when it is told to.
    runs = slurm.program("runs.sh", '#!/bin/sh\nsetsid sleep 1000 &\necho "ready $RANK"\nexec sleep 1000\n')
    slow = slurm.program("slow.sh", '#!/bin/sh\ntrap "" TERM\necho "ready $RANK"\nexec sleep 1000\n')
    crash = slurm.program("crash.sh", '#!/bin/sh\necho "ready $RANK"\nsleep 0.1\nexit 1\n')
    # Of each: the script, words of its output and how often they are there when it is cancelled.
    phases = {
        "srun is started": (f"drun {runs}", "starting drun on each", 1),
        "agents start": (f"srun drun {runs}", "this is node", 1),
        "nodes are waited for": (f"srun drun --nnodes 5 --rdzv-endpoint n1:29471 --rdzv-id gather {runs}", ": 4 of 5 nodes", 1),
        "workers start": (f"drun --nproc-per-node 4 {runs}", "ready ", 1),
        "workers run": (f"drun --nproc-per-node 2 {runs}", "ready ", 8),
        "workers of an elastic job run": (f"drun --nnodes 2:4 --nproc-per-node 2 {runs}", "ready ", 4),
        "rounds end": (f"drun --max-restarts 100000 {crash}", "ready ", 12),
        "workers are being stopped": (f"drun --shutdown-timeout 2 {slow}", "ready ", 4),
        # After KillWait, with drun: then the folder of the error files stays.
        "Slurm kills all": (f"export TMPDIR={killed}\ndrun {slow}", "ready ", 4),
    }
    head = f"{HEAD}export TMPDIR={folder}\n"
    jobs = [(what, slurm.submit(f"{head}{line}\n"), words, count) for what, (line, words, count) in phases.items()]
    for what, job, words, count in jobs:
        wait_for(f"{what}: {words}", lambda job=job, words=words, count=count: slurm.output(job).count(words) >= count)
        subprocess.run(["scancel", job], check=True, timeout=LIMIT)
    for what, job, _, _ in jobs:
        wait_for(f"{what}: the end of job {job}", lambda job=job: slurm.show(job, "JobState") == "CANCELLED")
    slurm.expect_nothing_left()
    left = [path.name for path in folder.iterdir()]
    if left:
        raise Failed(f"these files are left: {left}")


if __name__ == "__main__":
    sys.exit(run(__file__, (check_warning, check_signal, check_interrupt, check_requeue, check_saving, check_cancel)))
