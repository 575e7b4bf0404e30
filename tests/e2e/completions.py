"""The completion scripts in real shells: typed at a terminal, sourced and installed.

usage: completions.py BIN_FOLDER
"""
import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

BIN = pathlib.Path(sys.argv[1]).resolve()
PROGRAMS = ("drun", "drun-launch", "drun-store", "drunctl")
BASH_COMPLETION = pathlib.Path("/usr/share/bash-completion/bash_completion")
LIMIT = 120  # seconds, for one answer of a shell
BLANK = re.compile(r"(?<!\\) ")  # between words

# What is typed, and all that is offered for its last word: exactly, or at least (a set).
SIGNALS = {"SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"}
CASES = (
    # Flags, and where they end.
    ("drun --nno", ["--nnodes"]),
    ("drun --nnodes 2 --stan", ["--standalone"]),
    ("drun --exit-code", ["--exit-code-from"]),
    ("drun --monitor", []),
    ("drun-store --max-k", ["--max-key", "--max-keys"]),
    ("drunctl --e", ["--endpoint"]),
    ("drunctl --j", ["--json"]),
    ("drun cat --nno", []),
    ("drun -- --nno", []),
    ("drun --rdzv-endpoint node0:29500 --nno", ["--nnodes"]),
    ("drun --rdzv-conf join_timeout=5,rank=1 --nno", ["--nnodes"]),
    ("drun --nproc_per_node 2 --nno", ["--nnodes"]),
    ("drun --monitor-interval 1 --nno", ["--nnodes"]),
    ("drun --gpus 0,1 --nno", ["--nnodes"]),
    ("drun -n 4 --nno", ["--nnodes"]),
    ("drun -t 3 -r3 --nno", ["--nnodes"]),
    ("drun --use", []),
    ("drun-launch --use", ["--use-env"]),
    ("drun-launch --use-env --nno", ["--nnodes"]),
    ("drun-launch --nproc_per_node=2 train", ["train.py"]),
    # Values.
    ("drun --rdzv-backend ", ["c10d", "etcd", "static"]),
    ("drun --rdzv-backend s", ["static"]),
    ("drun --rdzv-backend=s", ["static"]),
    ("drun --rdzv-backend=", ["c10d", "etcd", "static"]),
    ("drun --rdzv_backend ", ["c10d", "etcd", "static"]),
    ("drun --rdzv_backend=s", ["static"]),
    ("drun-launch --rdzv_backend s", ["static"]),
    ("drun --nproc_per_node a", ["auto"]),
    ("drun-store --log_level w", ["warning"]),
    ("drun --on-sigterm ", ["leave", "stop"]),
    ("drun --exit-code-from ", ["first-failure", "highest", "lowest-rank"]),
    ("drun --numa-binding ex", ["exclusive"]),
    ("drun --print-completion ", ["bash", "fish", "zsh"]),
    ("drun -t ", ["0", "1", "2", "3"]),
    ("drun --nproc-per-node a", ["auto"]),
    ("drun -n a", ["auto"]),
    ("drun --gpu-ids a", ["all"]),
    ("drun --stop-signal SIGU", ["SIGUSR1", "SIGUSR2"]),
    ("drun --signals-to-handle ", SIGNALS),
    ("drun --signals-to-handle SIGTERM,SIGU", ["SIGTERM,SIGUSR1", "SIGTERM,SIGUSR2"]),
    ("drun --forward-signals=SIGUSR1,SIGUSR", ["SIGUSR1,SIGUSR1", "SIGUSR1,SIGUSR2"]),
    ("drun --rdzv-conf la", ["last_call_timeout="]),
    ("drun --rdzv-conf join_timeout=5,la", ["join_timeout=5,last_call_timeout="]),
    ("drun --rdzv-conf=join_timeout=5,is", ["join_timeout=5,is_host="]),
    ("drun --nnodes ", []),
    ("drun-store --log-level ", ["error", "info", "warning"]),
    ("drun-store --log-level=w", ["warning"]),
    ("drun-store --port ", []),
    ("drunctl --print-completion b", ["bash"]),
    # Files and folders.
    ("drun --report tr", ["train.py"]),
    ("drun --report=tr", ["train.py"]),
    ("drun --log-dir l", ["logs"]),
    ("drun --log-dir t", []),
    ("drun --log-dir=l", ["logs"]),
    ("drun-store --snapshot da", ["data.txt"]),
    ("drunctl set k --file da", ["data.txt"]),
    # The program, and its own arguments.
    ("drun train", ["train.py"]),
    ("drun ./tra", ["./train.py"]),
    ("drun --nnodes 2 spaced", ["spaced name.py"]),
    ("drun --nnodes 2 drunc", ["drunctl"]),
    ("drun --rdzv-endpoint node0:29500 train", ["train.py"]),
    ("drun --nnodes 2 cat tra", ["train.py"]),
    ("drun-store ", []),
    # Commands, and the flags of each.
    ("drunctl ", {"get", "set", "watch", "ping", "delete-job"}),
    ("drunctl wa", ["wait", "watch"]),
    ("drunctl --endpoint node0:29400 wa", ["wait", "watch"]),
    ("drunctl --prefix get wa", ["wait", "watch"]),
    ("drunctl get ", []),
    ("drunctl get da", []),
    ("drunctl get --w", ["--wait"]),
    ("drunctl set k v --w", []),
    ("drunctl watch --ex", ["--exact"]),
    ("drunctl timeline da", ["data.txt"]),
    ("drunctl timeline x --h", ["--help", "--html"]),
    ("drunctl timeline x -o da", ["data.txt"]),
    ("drunctl --w", []),
)


def printed(shell, folder):
    """The scripts as they are installed: a file for each program, named as the shell wants it."""
    name = {"bash": "{}", "zsh": "_{}", "fish": "{}.fish"}[shell]
    folder.mkdir()
    for program in PROGRAMS:
        text = subprocess.run([BIN / program, "--print-completion", shell], check=True, capture_output=True).stdout
        (folder / name.format(program)).write_bytes(text)
    return folder


def plain(words):
    """Without what a shell puts around them: backslashes, and a slash behind a folder."""
    return sorted({word.replace("\\", "").rstrip("/") for word in words} - {""})


def offered_words(words, start):
    """Without the flag before its value, and without flags where none was begun."""
    flag = re.match(r"--[a-z_-]+=", start)
    words = [word.removeprefix(flag[0]) if flag else word for word in words]
    return plain(word for word in words if not word.startswith("-") or start.startswith("-"))


class Terminal:
    """A shell with a terminal of its own."""

    def __init__(self, folder, words, *commands):
        environment = {"PATH": f"{BIN}:{os.environ['PATH']}", "HOME": str(folder), "TERM": "dumb", "LC_ALL": "C.UTF-8",
                       "COLUMNS": "4000", "INPUTRC": "/dev/null"}
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execvpe(words[0], words, environment)
        self.seen = ""
        for command in commands:
            self.type(command + "; print''f '(%s)\\n' done\r")
            self.until(r"\(done\)")

    def type(self, text):
        os.write(self.fd, text.encode())

    def until(self, pattern):
        end = time.monotonic() + LIMIT
        while not (found := re.search(pattern, self.seen, re.S)):
            if not select.select([self.fd], [], [], max(0, end - time.monotonic()))[0]:
                raise AssertionError(f"no {pattern!r} in {self.seen!r}")
            self.seen += os.read(self.fd, 65536).decode(errors="replace")
        self.seen = self.seen[found.end():]
        return found

    def offered(self, line):
        """EVERY inserts all that is offered in the place of the line's last word; Ctrl-T shows the line."""
        self.type(line + self.EVERY + "\024")
        full = self.until(r"<<<(.*?)>>>")[1]
        self.type("\025")
        return [] if full.strip() == line.strip() else self.inserted(line, full.rstrip())

    def close(self):
        os.kill(self.pid, 9)
        os.waitpid(self.pid, 0)
        os.close(self.fd)


class Bash(Terminal):
    EVERY = "\033*"

    def __init__(self, folder, *setup):
        super().__init__(
            folder, ["bash", "--norc", "--noprofile", "-i"],
            "bind 'set enable-bracketed-paste off'; bind 'set completion-query-items -1'; bind 'set bell-style none'",
            "PS1=; show() { printf '<<<%s>>>\\n' \"$READLINE_LINE\"; }; bind -x '\"\\C-t\": show'", *setup)

    def inserted(self, line, full):
        cut = max(line.rfind(mark) for mark in " =:") + 1
        kept = re.sub(r"^--[a-z_-]+=", "", line[line.rindex(" ") + 1:cut])  # not the flag itself
        return plain(kept + word for word in BLANK.split(full[cut:]))


class Zsh(Terminal):
    EVERY = "\030"

    def __init__(self, folder, *setup):
        super().__init__(
            folder, ["zsh", "-f", "-i"],
            "PS1='' PS2='' PROMPT_SP=''; unsetopt zle_bracketed_paste prompt_sp beep; bindkey -e; LISTMAX=10000", *setup,
            # A widget of the completion system that inserts all matches.
            "_every() { _main_complete; compstate[insert]=all; compstate[list]=; }; zle -C every complete-word _every; "
            "bindkey '^X' every; show() { print -r -- \"<<<$BUFFER>>>\"; }; zle -N show; bindkey '^T' show")

    def inserted(self, line, full):
        start = line.rindex(" ") + 1
        return offered_words((re.sub(r"^(--[a-z_-]+)=$", r"\1", word) for word in BLANK.split(full[start:])), line[start:])


class Fish:
    def __init__(self, folder, *setup):
        self.folder, self.setup = folder, setup

    def offered(self, line):
        script = "\n".join([*self.setup, "complete -C $argv[1]"])
        environment = {"PATH": f"{BIN}:{os.environ['PATH']}", "HOME": str(self.folder), "LC_ALL": "C.UTF-8"}
        done = subprocess.run(["fish", "--no-config", "-c", script, line], cwd=self.folder, env=environment, check=True,
                              capture_output=True, text=True, timeout=LIMIT)
        if done.stderr:
            raise AssertionError(done.stderr)
        return offered_words((word.split("\t")[0] for word in done.stdout.splitlines()), line[line.rindex(" ") + 1:])

    def close(self):
        pass


class Shells(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scripts = pathlib.Path(scratch.name, "scripts")
        self.folder = pathlib.Path(scratch.name, "here")
        self.folder.mkdir()
        for name in ("train.py", "data.txt", "spaced name.py"):
            (self.folder / name).write_text("x", encoding="utf-8")
        (self.folder / "logs").mkdir()

    def check(self, shell):
        self.addCleanup(shell.close)
        for line, expected in CASES:
            with self.subTest(line):
                offered = shell.offered(line)
                if isinstance(expected, set):
                    self.assertLessEqual(expected, set(offered))
                    self.assertFalse({"train.py", "logs"} & set(offered))
                else:
                    self.assertEqual(offered, expected)

    @unittest.skipUnless(shutil.which("bash"), "bash is not installed")
    def test_bash_sourced(self):
        self.check(Bash(self.folder, *(f"source <({program} --print-completion bash)" for program in PROGRAMS)))

    @unittest.skipUnless(shutil.which("bash") and BASH_COMPLETION.exists(), "bash-completion is not installed")
    def test_bash_installed(self):
        (self.scripts.parent / "user").mkdir()
        printed("bash", self.scripts.parent / "user" / "completions")
        self.check(Bash(self.folder, f"BASH_COMPLETION_USER_DIR={self.scripts.parent / 'user'}",
                        f"source {BASH_COMPLETION}"))

    @unittest.skipUnless(shutil.which("zsh"), "zsh is not installed")
    def test_zsh_sourced(self):
        self.check(Zsh(self.folder, "autoload -Uz compinit && compinit -u -D",
                       *(f"source <({program} --print-completion zsh)" for program in PROGRAMS)))

    @unittest.skipUnless(shutil.which("zsh"), "zsh is not installed")
    def test_zsh_installed(self):
        self.check(Zsh(self.folder, f"fpath=({printed('zsh', self.scripts)} $fpath)",
                       "autoload -Uz compinit && compinit -u -D"))

    @unittest.skipUnless(shutil.which("fish"), "fish is not installed")
    def test_fish_sourced(self):
        self.check(Fish(self.folder, *(f"{program} --print-completion fish | source" for program in PROGRAMS)))

    @unittest.skipUnless(shutil.which("fish"), "fish is not installed")
    def test_fish_installed(self):
        self.check(Fish(self.folder, f"set -p fish_complete_path {printed('fish', self.scripts)}"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
