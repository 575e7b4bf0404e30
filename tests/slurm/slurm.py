"""A real Slurm of two nodes on this machine runs the batch script of docs/clusters.md, in which drun is told nothing of the
nodes, and others; and cancels a job.

usage: slurm.py ROOT BIN_DIR

slurmctld and two slurmd run in namespaces of their own (network, mounts, processes), without munge, with all their files
in a folder that goes with them. Skipped (77) without Debian's slurmctld and slurmd, or without the right to make namespaces.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

PROGRAMS = ["slurmctld", "slurmd", "salloc", "sbatch", "srun", "scancel", "scontrol", "sinfo", "unshare", "ip"]
# Slurm wants an address beside the loopback ones.
NODES = {"n1": "10.77.0.1", "n2": "10.77.0.2"}
NAMESPACES = ["unshare", "--net", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child"]
LIMIT = 150
GREETINGS = [f"hello from rank {rank} of 4 (local rank {rank % 2} on node {rank // 2})" for rank in range(4)]

CONFIGURATION = """\
ClusterName=test
SlurmctldHost={host}(10.77.0.1)
AuthType=auth/none
CredType=cred/none
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=bf_interval=1,sched_interval=1
ReturnToService=2
KillWait=60
MessageTimeout=100
BatchStartTimeout=100
GresTypes=gpu
SlurmdParameters=config_overrides
NodeName=n1 NodeHostname={host} NodeAddr=10.77.0.1 Port=7001 CPUs=16 Gres=gpu:2
NodeName=n2 NodeHostname={host} NodeAddr=10.77.0.2 Port=7002 CPUs=16 Gres=gpu:2
PartitionName=all Nodes=n1,n2 Default=YES State=UP MaxTime=INFINITE
"""


class Failed(Exception):
    pass


class CannotRun(Exception):
    """Slurm itself, or what it needs, does not work here."""


def wait_for(what, condition):
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > LIMIT:
            raise Failed(f"not within {LIMIT} s: {what}")
        time.sleep(0.05)


def output_of(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT).stdout


class Slurm:
    def __init__(self, folder):
        self.folder = folder
        for name in ["state", *NODES]:
            (folder / name).mkdir()
        self.daemons = []
        (folder / "slurm.conf").write_text(CONFIGURATION.format(host=os.uname().nodename, folder=folder))
        for number in range(2):
            (folder / f"gpu{number}").touch()
        (folder / "gres.conf").write_text(f"NodeName=n[1-2] Name=gpu File={folder}/gpu[0-1]\n")
        os.environ["SLURM_CONF"] = str(folder / "slurm.conf")

    def idle(self):
        return output_of("sinfo", "-h", "-N", "-t", "idle", "-o", "%N").split() == [*NODES]

    def daemon(self, *command):
        with open(self.folder / "daemons.log", "a", encoding="utf-8") as log:
            self.daemons.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log))

    def submit(self, script):
        """The job's number."""
        path = self.folder / "job.sh"
        path.write_text(script, encoding="utf-8")
        return output_of("sbatch", "--parsable", f"--output={self.folder}/%j.out", str(path)).strip()

    def show(self, job, field):
        found = re.search(rf"\b{field}=(\S*)", output_of("scontrol", "show", "job", job))
        return found[1] if found else "unknown"

    def end(self, job):
        """Exit code and output of the job."""
        wait_for(f"the end of job {job}", lambda: self.show(job, "JobState") in (
            "COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL"))
        return self.show(job, "ExitCode"), self.output(job)

    def output(self, job):
        path = self.folder / f"{job}.out"
        return path.read_text(encoding="utf-8") if path.exists() else ""

    def close(self):
        for daemon in reversed(self.daemons):
            daemon.terminate()
        for daemon in self.daemons:
            daemon.wait(LIMIT)


def documented_script(root, page="clusters.md"):
    """The first of a page."""
    text = (root / "docs" / page).read_text(encoding="utf-8")
    return re.search(r"^```sh slurm\n(.*?)^```$", text, re.M | re.S)[1]


def with_program(script, program):
    """The documented script with another program."""
    changed = script.replace("examples/shell/hello.sh", program)
    if changed == script:
        raise Failed("the script of docs/clusters.md does not run examples/shell/hello.sh any more")
    return changed


def expect(what, found, wanted):
    if found != wanted:
        raise Failed(f"{what}: {found!r}, not {wanted!r}")


def start(slurm, _):
    try:
        slurm.daemon("slurmctld", "-D")
        for node in NODES:
            slurm.daemon("slurmd", "-D", "-N", node)
        wait_for("two idle nodes", slurm.idle)
        code, output = slurm.end(slurm.submit("#!/bin/sh\n#SBATCH --nodes=2\n#SBATCH --gpus-per-node=2\nsrun true\n"))
        expect(f"exit code of a job without drun\n{output}", code, "0:0")
    except (Failed, OSError) as failed:
        raise CannotRun(str(failed)) from failed


def check_ranks(slurm, script):
    # With all that drun would find out said.
    check_greetings(slurm, documented_script(pathlib.Path(sys.argv[1]), "slurm.md"))
    check_greetings(slurm, script)


def check_greetings(slurm, script):
    code, output = slurm.end(slurm.submit(script))
    expect(f"exit code\n{output}", code, "0:0")
    found = sorted(re.findall(r"^hello from .*$", output, re.M))
    expect("output", found, GREETINGS)


def check_inference(slurm, _):
    """What drun takes from Slurm's variables, in every way to start a step; and where there is none."""
    head = "#!/bin/sh\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=1\n"
    hetero = "#!/bin/sh\n#SBATCH --nodes=1 --ntasks=1\n#SBATCH hetjob\n#SBATCH --nodes=1 --ntasks=1\n"
    drun = "drun --nproc-per-node 2 examples/shell/hello.sh"
    steps = {
        "a step": f"{head}srun {drun}\n",
        "a later step": f"{head}srun true\nsrun true\nsrun --preserve-env {drun}\n",
        "a step in arbitrary order": f"{head}printf 'n2\\nn1\\n' >order\nexport SLURM_HOSTFILE=order\nsrun -m arbitrary {drun}\n",
        "a step of a heterogeneous job": f"{hetero}srun --het-group=0,1 {drun}\n",
        "a step with a task for each of several": f"{head}#SBATCH --cpus-per-task=2\nsrun {drun}\n",
    }
    for what, job in [(what, slurm.submit(script)) for what, script in steps.items()]:
        code, output = slurm.end(job)
        expect(f"exit code of {what}\n{output}", code, "0:0")
        expect(what, sorted(re.findall(r"^hello from .*$", output, re.M)), GREETINGS)
        for node in range(2):
            if not re.search(rf"^drun: Slurm: 2 nodes .*, this is node {node} \(SLURM_NODEID\), meeting at n[12]:2\d+ ", output, re.M):
                raise Failed(f"{what}: node {node} does not say what it inferred:\n{output}")
    refused = {
        "a batch script": (f"{head}{drun}\n", "srun --nodes=2 --ntasks=2 --ntasks-per-node=1 drun ...;"),
        "a batch script of many tasks": (f"#!/bin/sh\n#SBATCH --nodes=2 --ntasks-per-node=4\n{drun}\n",
                                         "--ntasks-per-node=1 --cpus-per-task=4 drun --nproc-per-node 4 ...;"),
        "the script of a heterogeneous job": (f"{hetero}{drun}\n", "srun --het-group=0-1 --ntasks-per-node=1 drun ..."),
        "many tasks": (f"#!/bin/sh\n#SBATCH --nodes=2 --ntasks-per-node=4\nsrun {drun}\n",
                       "--ntasks-per-node=1 --cpus-per-task=4 drun --nproc-per-node 4 ...;"),
    }
    for what, job in [(what, slurm.submit(script)) for what, (script, _) in refused.items()]:
        words = refused[what][1]
        code, output = slurm.end(job)
        expect(f"exit code of {what}\n{output}", code, "2:0")
        if words not in output or "hello from" in output:
            raise Failed(f"{what} is not refused:\n{output}")
    one = {
        "a batch script of one node": f"#!/bin/sh\n#SBATCH --nodes=1\n{drun}\n",
        "a step of one node": f"#!/bin/sh\n#SBATCH --nodes=2\nsrun --nodes=1 --ntasks=1 {drun}\n",
        "a batch script that is told so": f"{head}drun --nnodes 1 --nproc-per-node 2 examples/shell/hello.sh\n",
    }
    for what, job in [(what, slurm.submit(script)) for what, script in one.items()]:
        code, output = slurm.end(job)
        expect(f"exit code of {what}\n{output}", code, "0:0")
        expect(what, output.count(" of 2 (local rank "), 2)
    shell = subprocess.run(["salloc", "--nodes=2", "--ntasks-per-node=1", "srun", *drun.split()], capture_output=True,
                           text=True, check=False, timeout=LIMIT)
    expect(f"exit code of salloc's srun\n{shell.stderr}", shell.returncode, 0)
    expect("salloc's srun", sorted(shell.stdout.splitlines()), GREETINGS)
    shell = subprocess.run(["salloc", "--nodes=2", *drun.split()], capture_output=True, text=True, check=False, timeout=LIMIT)
    expect(f"exit code of salloc without srun\n{shell.stderr}", shell.returncode, 2)


def check_launcher(slurm, _):
    """--launcher srun: drun in the batch script starts itself on all nodes, in a tree too; and says what is missing."""
    head = "#!/bin/sh\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=1\n"
    drun = "drun --launcher srun --nproc-per-node 2 "
    for what, words in {"a batch script": drun, "a batch script, in a tree": f"{drun} --fan-out 1 ", "one node": f"{drun} -H n2 ",
                        "a variable": "export PET_LAUNCHER=srun\ndrun --nproc-per-node 2 "}.items():
        code, output = slurm.end(slurm.submit(f"{head}{words} examples/shell/hello.sh\n"))
        expect(f"exit code of {what}\n{output}", code, "0:0")
        wanted = [line.replace("of 4", "of 2") for line in GREETINGS[:2]] if what == "one node" else GREETINGS
        expect(what, sorted(re.findall(r"^hello from .*$", output, re.M)), wanted)
    # All of a node's CPUs are the workers', whatever the job's tasks have.
    code, output = slurm.end(slurm.submit(f"{head}{drun} sh -c 'echo cpus $(env -u OMP_NUM_THREADS nproc)'\n"))
    expect("CPUs", re.findall(r"^cpus .*$", output, re.M), [f"cpus {os.cpu_count()}"] * 4)
    code, output = slurm.end(slurm.submit(f"{head}{drun} sh -c '[ $RANK != 3 ] || exit 7; exec sleep 1000'\n"))
    expect(f"exit code of a failure\n{output}", code, "7:0")
    expect("reports", output.count("job failed: rank 3 "), 1)
    expect_no_process("nothing", slurm)
    for what, script, words in (("a step", f"{head}srun --ntasks=2 {drun} true\n", "an srun has started this drun already"),
                                ("a node of others", f"{head}{drun} -H n1,n9 true\n", "error: n9: ")):
        code, output = slurm.end(slurm.submit(script))
        if code == "0:0" or words not in output:
            raise Failed(f"{what} is not refused: {code}\n{output}")
    shell = subprocess.run(["drun", "--launcher", "srun", "true"], capture_output=True, text=True, check=False, timeout=LIMIT)
    expect("exit code outside of a job", shell.returncode, 2)
    expect("outside of a job", shell.stderr, "drun: error: --launcher 'srun': this is no job of Slurm (SLURM_JOB_ID is not set): "
                                             "begin one with salloc or sbatch\n")
    shell = subprocess.run(["salloc", "--nodes=2", *drun.split(), "examples/shell/hello.sh"], capture_output=True, text=True, check=False,
                           timeout=LIMIT)
    expect(f"exit code of salloc\n{shell.stderr}", shell.returncode, 0)
    expect("salloc", sorted(shell.stdout.splitlines()), GREETINGS)
    # Nothing outlives a starter that is killed, though the job goes on.
    code, output = slurm.end(slurm.submit(f"{head}{drun} sh -c 'echo runs; exec sleep 1000' >killed.out &\nstarter=$!\n"
                                          "until [ \"$(grep -c runs killed.out)\" = 4 ]; do sleep 0.1; done\nkill -9 $starter\n"
                                          "until ! pidof drun sleep; do sleep 0.1; done\nexit 3\n"))
    expect(f"exit code of a script whose drun was killed\n{output}", code, "3:0")
    job = slurm.submit(f"{head}{drun} sh -c 'echo runs; exec sleep 1000'\n")
    wait_for("four workers", lambda: slurm.output(job).count("runs") == 4)
    subprocess.run(["scancel", job], check=True, timeout=LIMIT)
    slurm.end(job)
    expect_no_process("nothing", slurm)


def check_frameworks(slurm, _):
    """Slurm's variables of a task are true of each worker; and an MPI program runs across the nodes."""
    head = "#!/bin/sh\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=1\nsrun drun --nproc-per-node 2 "
    names = ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_NPROCS", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE",
             "SLURM_GTIDS", "SLURM_NODEID")
    code, output = slurm.end(slurm.submit(head + "sh -c 'echo \"task " + " ".join(f"${name}" for name in names) + "\"'\n"))
    expect(f"exit code\n{output}", code, "0:0")
    expect("the variables of tasks", sorted(re.findall(r"^task .*$", output, re.M)),
           [f"task {rank} 4 4 4 {rank % 2} 2(x2) {'2,3' if rank > 1 else '0,1'} {rank // 2}" for rank in range(4)])
    if shutil.which("mpicc.mpich") is None:
        print("no MPI program: no mpicc.mpich (apt-get install libmpich-dev)")
        return
    subprocess.run(["mpicc.mpich", "examples/mpi/sum.c", "-o", "sum"], check=True, timeout=LIMIT)
    code, output = slurm.end(slurm.submit(head + "--framework mpi ./sum\n"))
    expect(f"exit code of an MPI program\n{output}", code, "0:0")
    expect("an MPI program", sorted(re.findall(r"^rank \d.*$", output, re.M)), [f"rank {rank} of 4: the sum is 6" for rank in range(4)])


def check_exit_code(slurm, script):
    program = slurm.folder / "fails.sh"
    program.write_text('#!/bin/sh\n[ "$RANK" != 3 ] || exit 7\nexec sleep 1000\n')
    program.chmod(0o755)
    code, output = slurm.end(slurm.submit(with_program(script, str(program))))
    expect(f"exit code\n{output}", code, "7:0")
    expect_no_process("fails.sh", slurm)


def expect_no_process(name, slurm):
    def lines():
        for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            try:
                yield path.read_bytes()
            except OSError:
                pass  # it is gone

    wait_for(f"the end of every process of {name}",
             lambda: not any(name.encode() in line or os.path.basename(line.split(b"\0")[0]) in (b"drun", b"sleep") for line in lines()))
    wait_for("idle nodes", slurm.idle)


def check_cancel(slurm, script):
    """scancel gives the workers their SIGTERM, and leaves nothing."""
    program = slurm.folder / "saves.sh"
    # Slurm signals every process of the step, one after the other: the end of sleep must not be the worker's.
    program.write_text(f'#!/bin/sh\ntrap "echo saved >{slurm.folder}/saved.$RANK; exit 0" TERM\n'
                       f'echo "ready $RANK"\nwhile :; do sleep 1000 & wait; done\n')
    program.chmod(0o755)
    job = slurm.submit(with_program(script, str(program)))
    wait_for("four workers", lambda: slurm.output(job).count("ready ") == 4)
    subprocess.run(["scancel", job], check=True, timeout=LIMIT)
    slurm.end(job)
    expect_no_process("saves.sh", slurm)
    expect("ranks that had time to save", sorted(path.name for path in slurm.folder.glob("saved.*")),
           [f"saved.{rank}" for rank in range(4)])


def prepare_machine(folder):
    """The network and the names of the test's own namespaces."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    for address in NODES.values():
        subprocess.run(["ip", "address", "add", f"{address}/32", "dev", "lo"], check=True)
    hosts = folder / "hosts"
    names = {"localhost": "127.0.0.1", os.uname().nodename: "10.77.0.1", **NODES}
    hosts.write_text("".join(f"{address} {name}\n" for name, address in names.items()), encoding="utf-8")
    subprocess.run(["mount", "--bind", str(hosts), "/etc/hosts"], check=True)


def inside(root, folder):
    """In namespaces of the test's own."""
    try:
        prepare_machine(folder)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"skipped: {error}")
        return 77
    os.symlink(root / "examples", folder / "examples")
    os.chdir(folder)
    slurm = Slurm(folder)
    script = documented_script(root)
    try:
        for step in (start, check_ranks, check_inference, check_launcher, check_frameworks, check_exit_code, check_cancel):
            began = time.monotonic()
            step(slurm, script)
            print(f"{step.__name__}: ok, {time.monotonic() - began:.1f} s", flush=True)
    except (Failed, CannotRun) as failed:
        cannot_run = isinstance(failed, CannotRun)
        print(f"skipped: Slurm does not run here: {failed}" if cannot_run else f"{step.__name__}: {failed}")
        for log in sorted(folder.glob("*.log")):
            print(f"--- {log.name}:\n" + "\n".join(log.read_text(errors="replace").splitlines()[-15:]))
        return 77 if cannot_run else 1
    finally:
        slurm.close()
    return 0


def main():
    root, binaries = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
    if len(sys.argv) > 3:
        return inside(root, pathlib.Path(sys.argv[3]))
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing:
        print(f"skipped: no {', '.join(missing)} (apt-get install slurmctld slurmd slurm-client)")
        return 77
    if subprocess.run([*NAMESPACES, "true"], capture_output=True, check=False).returncode != 0:
        print("skipped: namespaces cannot be made here: this needs root")
        return 77
    environment = {name: value for name, value in os.environ.items() if not re.match(r"PET_|SLURM_|TORCHELASTIC_", name)}
    environment["PATH"] = f"{binaries}:{environment['PATH']}"
    with tempfile.TemporaryDirectory() as folder:
        return subprocess.run([*NAMESPACES, sys.executable, __file__, str(root), str(binaries), folder],
                              env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
