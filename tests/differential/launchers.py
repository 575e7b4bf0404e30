"""Starts drun or a real torchrun for one case, and collects what their workers wrote down."""
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
WORKER = str(HERE / "worker.py")
RECORD_WORKER = str(HERE / "record_worker.py")
TIME_LIMIT = 180  # seconds, for whatever is waited for


class Release:
    """A PyTorch: its version, and the words that run a program beside it."""

    def __init__(self, name, version, wrapper, python):
        self.name = name
        self.version = version  # (2, 14)
        self.wrapper = wrapper
        self.python = python

    @property
    def shown(self):
        return ".".join(map(str, self.version))


def debian_12():
    """This machine's own, or None."""
    found = os.environ.get("DRUN_TORCH_PYTHON", "/usr/bin/python3")
    try:
        version = subprocess.run(
            [found, "-c", "import torch.version; print(torch.version.__version__)"],
            capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    return Release("host", tuple(int(n) for n in re.findall(r"\d+", version)[:2]), [], found)


def newer(name):
    """That of the folder made by scripts/torch-chroot, or None."""
    script = str(ROOT / "scripts" / "torch-chroot")
    if os.geteuid() != 0 or subprocess.run([script, "path", name], capture_output=True, check=False).returncode != 0:
        return None
    wrapper = [script, "run", name]
    shown = subprocess.run(wrapper + ["/usr/bin/python3", "-c", "import torch.version; print(torch.version.__version__)"],
                           capture_output=True, text=True, check=True, cwd=ROOT).stdout
    return Release(name, tuple(int(n) for n in re.findall(r"\d+", shown)[:2]), wrapper, "/usr/bin/python3")


class ReservedPort:
    """A port that nobody else is given, and that a launcher can bind."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_INET6)
        self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(("::", 0))
        self.number = str(self.socket.getsockname()[1])


class TimeIsOver(Exception):
    pass


def wait_until(condition, what):
    deadline = time.monotonic() + TIME_LIMIT
    while not condition():
        if time.monotonic() > deadline:
            raise TimeIsOver(what)
        time.sleep(0.02)


class Agent:
    """One running launcher."""

    def __init__(self, process, out, err):
        self.process = process
        self.out_file = out
        self.err_file = err

    def signal(self, number):
        self.process.send_signal(number)

    def wait(self):
        """The exit code, as a shell gives it."""
        try:
            code = self.process.wait(TIME_LIMIT)
        except subprocess.TimeoutExpired as late:
            raise TimeIsOver("the launcher's end") from late
        return code if code >= 0 else 128 - code

    @staticmethod
    def _lines(file):
        file.seek(0)
        return file.read().decode("utf-8", "replace").splitlines()

    @property
    def out(self):
        return self._lines(self.out_file)

    @property
    def err(self):
        return self._lines(self.err_file)


class Job:
    """One case under one launcher: a scratch folder, agents, and what the workers wrote down."""

    def __init__(self, launcher, release, drun_folder):
        self.launcher = launcher  # "torchrun" or "drun"
        self.release = release
        self.drun_folder = pathlib.Path(drun_folder).resolve()
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="drun-differential-"))
        self.notes_folder = self.folder / "notes"
        self.temporary = self.folder / "tmp"
        for path in (self.notes_folder, self.temporary):
            path.mkdir()
        self.agents = []
        self.ports = []
        self.environment = {
            "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME": "/root", "LC_ALL": "C.UTF-8",
            "TMPDIR": str(self.temporary), "DIFF_OUT": str(self.notes_folder), "DIFF_PYTHON": release.python,
            "PYTHONDONTWRITEBYTECODE": "1", "PYTHONWARNINGS": "ignore",
        }

    def port(self):
        self.ports.append(ReservedPort())
        return self.ports[-1].number

    def one_node(self):
        """Flags of a job of one node that shares no port with others, whatever the version."""
        return ["--rdzv_backend=c10d", "--rdzv_endpoint=localhost:" + self.port(), "--rdzv_id=job"]

    def start(self, *arguments, environment=(), launch=False, stdin=subprocess.DEVNULL, folder=None, umask=0o22):
        if self.launcher == "drun":
            argv = [str(self.drun_folder / ("drun-launch" if launch else "drun"))]
        else:
            argv = [self.release.python, str(HERE / "torchrun.py")] + (["--launch"] if launch else [])
        whole = {**self.environment, **dict(environment)}
        if self.launcher == "drun":
            whole["PYTHON_EXEC"] = self.release.python
        argv = self.release.wrapper + argv + [str(word) for word in arguments]
        out, err = tempfile.TemporaryFile(), tempfile.TemporaryFile()
        # The wrapper makes the folder that it is started in visible.
        process = subprocess.Popen(argv, env=whole, cwd=folder or ROOT, stdin=stdin, stdout=out, stderr=err,
                                   umask=umask, start_new_session=True)
        agent = Agent(process, out, err)
        agent.environment = whole
        self.agents.append(agent)
        return agent

    def run(self, *arguments, **options):
        """One agent from start to end; its exit code."""
        return self.start(*arguments, **options).wait()

    def notes(self, kind):
        found = []
        for path in self.notes_folder.glob("note.*"):
            note = json.loads(path.read_text(encoding="utf-8"))
            if note["kind"] == kind:
                found.append(note)
        return sorted(found, key=lambda note: note["time"])

    def wait_for_notes(self, kind, count):
        wait_until(lambda: len(self.notes(kind)) >= count or self.all_ended(), f"{count} workers that wrote {kind!r}")

    def all_ended(self):
        return all(agent.process.poll() is not None for agent in self.agents)

    def mark(self, name):
        (self.notes_folder / name).touch()

    def left_behind(self):
        """Processes of this job other than its launchers."""
        found = []
        mark = f"DIFF_OUT={self.notes_folder}".encode()
        launchers = {agent.process.pid for agent in self.agents if agent.process.poll() is None}
        for process in pathlib.Path("/proc").iterdir():
            if not process.name.isdigit() or int(process.name) in launchers:
                continue
            with contextlib.suppress(OSError):
                if mark in (process / "environ").read_bytes().split(b"\0"):
                    found.append(int(process.name))
        return found

    def close(self):
        for agent in self.agents:
            if agent.process.poll() is None:
                agent.process.kill()
        deadline = time.monotonic() + 10
        while (left := self.left_behind()) and time.monotonic() < deadline:
            for pid in left:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.02)
        for agent in self.agents:
            agent.process.wait()
            agent.out_file.close()
            agent.err_file.close()
        for port in self.ports:
            port.socket.close()
        shutil.rmtree(self.folder, ignore_errors=True)
