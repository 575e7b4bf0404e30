"""A Slurm of four nodes on this machine, in namespaces of its own (network, mounts, processes), without munge, with all its
files in a folder that goes with it: what the tests of this folder share."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

PROGRAMS = ["slurmctld", "slurmd", "salloc", "sbatch", "srun", "scancel", "scontrol", "sinfo", "squeue", "unshare", "ip"]
# Slurm wants an address beside the loopback ones.
NODES = {f"n{number}": f"10.77.0.{number}" for number in range(1, 5)}
NAMESPACES = ["unshare", "--net", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child"]
LIMIT = 150
ENDED = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL")

# A job that is put back into the queue waits until its credential has expired.
CONFIGURATION = """\
ClusterName=test
SlurmctldHost={host}(10.77.0.1)
AuthType=auth/none
AuthInfo=cred_expire=20
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
KillWait=10
MessageTimeout=100
BatchStartTimeout=100
GresTypes=gpu
SlurmdParameters=config_overrides
{nodes}
PartitionName=all Nodes=n[1-4] Default=YES State=UP MaxTime=INFINITE
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


def expect(what, found, wanted):
    if found != wanted:
        raise Failed(f"{what}: {found!r}, not {wanted!r}")


def output_of(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT).stdout


def greetings(nodes, workers=2):
    """What examples/shell/hello.sh prints on so many nodes."""
    return sorted(f"hello from rank {rank} of {nodes * workers} (local rank {rank % workers} on node {rank // workers})"
                  for rank in range(nodes * workers))


def greetings_in(output):
    return sorted(re.findall(r"^hello from .*$", output, re.M))


def command_lines():
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            yield path.read_bytes()
        except OSError:
            pass  # it is gone


class Slurm:
    def __init__(self, folder):
        self.folder = folder
        self.path = os.environ["PATH"]
        self.scripts = 0
        for name in ["state", *NODES]:
            (folder / name).mkdir()
        self.daemons = []
        host = os.uname().nodename
        nodes = "\n".join(f"NodeName={name} NodeHostname={host} NodeAddr={address} Port={7000 + number} CPUs=16 Gres=gpu:2"
                          for number, (name, address) in enumerate(NODES.items(), 1))
        (folder / "slurm.conf").write_text(CONFIGURATION.format(host=host, folder=folder, nodes=nodes))
        for number in range(2):
            (folder / f"gpu{number}").touch()
        (folder / "gres.conf").write_text(f"NodeName=n[1-4] Name=gpu File={folder}/gpu[0-1]\n")
        os.environ["SLURM_CONF"] = str(folder / "slurm.conf")

    def start(self):
        try:
            self.daemon("slurmctld", "-D")
            for node in NODES:
                self.daemon("slurmd", "-D", "-N", node)
            wait_for("four idle nodes", self.idle)
            code, output = self.end(self.submit("#!/bin/sh\n#SBATCH --nodes=4\n#SBATCH --gpus-per-node=2\nsrun true\n"))
            expect(f"exit code of a job without drun\n{output}", code, "0:0")
        except (Failed, OSError) as failed:
            raise CannotRun(str(failed)) from failed

    def idle(self):
        return output_of("sinfo", "-h", "-N", "-t", "idle", "-o", "%N").split() == [*NODES]

    def daemon(self, *command):
        with open(self.folder / "daemons.log", "a", encoding="utf-8") as log:
            self.daemons.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log))

    def submit(self, script):
        """The job's number."""
        self.scripts += 1
        path = self.folder / f"job{self.scripts}.sh"
        path.write_text(script, encoding="utf-8")
        return output_of("sbatch", "--parsable", "--open-mode=append", f"--output={self.folder}/%j.out", str(path)).strip()

    def show(self, job, field):
        found = re.search(rf"\b{field}=(\S*)", output_of("scontrol", "show", "job", job))
        return found[1] if found else "unknown"

    def end(self, job):
        """Exit code and output of the job."""
        wait_for(f"the end of job {job}", lambda: self.show(job, "JobState") in ENDED)
        return self.show(job, "ExitCode"), self.output(job)

    def output(self, job):
        path = self.folder / f"{job}.out"
        return path.read_text(encoding="utf-8") if path.exists() else ""

    def program(self, name, text):
        """A program that jobs may start."""
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)
        return path

    def expect_nothing_left(self):
        """No process of drun's or of a job's is left on any node: all are in this namespace."""
        known = re.compile(rb"(\S*/)?slurmctld\0|(\S*/)?slurmd\0|\S*python\S*\0|: slurmscriptd\0")

        def left():
            return [line for line in command_lines() if line and not known.match(line)]

        try:
            wait_for("the end of every process", lambda: not left())
        except Failed as failed:
            raise Failed(f"{failed}: {left()}") from failed
        wait_for("idle nodes", self.idle)

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
    changed = script.replace("examples/shell/hello.sh", str(program))
    if changed == script:
        raise Failed("the script of docs/clusters.md does not run examples/shell/hello.sh any more")
    return changed


def prepare_machine(folder):
    """The network and the names of the test's own namespaces."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    for address in NODES.values():
        subprocess.run(["ip", "address", "add", f"{address}/32", "dev", "lo"], check=True)
    hosts = folder / "hosts"
    names = {"localhost": "127.0.0.1", os.uname().nodename: "10.77.0.1", **NODES}
    hosts.write_text("".join(f"{address} {name}\n" for name, address in names.items()), encoding="utf-8")
    subprocess.run(["mount", "--bind", str(hosts), "/etc/hosts"], check=True)


def inside(root, folder, checks):
    """In namespaces of the test's own."""
    try:
        prepare_machine(folder)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"skipped: {error}")
        return 77
    os.symlink(root / "examples", folder / "examples")
    os.chdir(folder)
    slurm = Slurm(folder)
    name = "start"
    try:
        slurm.start()
        script = documented_script(root)
        for check in checks:
            name = check.__name__
            began = time.monotonic()
            check(slurm, script)
            print(f"{name}: ok, {time.monotonic() - began:.1f} s", flush=True)
    except (Failed, CannotRun) as failed:
        cannot_run = isinstance(failed, CannotRun)
        print(f"skipped: Slurm does not run here: {failed}" if cannot_run else f"{name}: {failed}")
        for log in sorted(folder.glob("*.log")):
            print(f"--- {log.name}:\n" + "\n".join(log.read_text(errors="replace").splitlines()[-15:]))
        return 77 if cannot_run else 1
    finally:
        slurm.close()
    return 0


def run(program, checks):
    """`program`: the test's own file, called with ROOT BIN_DIR. Each of `checks` gets the Slurm and the script of clusters.md."""
    root, binaries = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
    if len(sys.argv) > 3:
        return inside(root, pathlib.Path(sys.argv[3]), checks)
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing:
        print(f"skipped: no {', '.join(missing)} (apt-get install slurmctld slurmd slurm-client)")
        return 77
    if subprocess.run([*NAMESPACES, "true"], capture_output=True, check=False).returncode != 0:
        print("skipped: namespaces cannot be made here: this needs root")
        return 77
    environment = {name: value for name, value in os.environ.items() if not re.match(r"PET_|DRUN_|SLURM_|TORCHELASTIC_", name)}
    environment["PATH"] = f"{binaries}:{environment['PATH']}"
    with tempfile.TemporaryDirectory() as folder:
        return subprocess.run([*NAMESPACES, sys.executable, program, str(root), str(binaries), folder],
                              env=environment, check=False).returncode
