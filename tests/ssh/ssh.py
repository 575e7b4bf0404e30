"""drun -H over real sshds of this machine, one for each host.

usage: ssh.py BIN_DIR [CASE...]
"""
import fcntl
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import termios
import threading
import time

import hosts

LIMIT = 120
SECRET = "hunter2 'of' \"mine\""


class Case:
    """What every case has: hosts, and drun as a user starts it."""

    def __init__(self, drun, network, folder):
        self.drun, self.network, self.folder = drun, network, pathlib.Path(folder)
        self.mark = f"ssh-case-{os.getpid()}-{time.monotonic_ns()}"
        self.environment = {name: value for name, value in os.environ.items()
                            if not re.match(r"PET_|SLURM_|TORCHELASTIC_|MASTER_|RANK$|WORLD_SIZE$", name)}
        self.environment["DRUN_TEST_MARK"] = self.mark

    def start(self, *arguments, launcher=None, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **environment):
        return subprocess.Popen([self.drun, "--launcher", launcher or f"ssh -F {self.network.config}", *arguments], text=True,
                                cwd=self.folder, env={**self.environment, **environment}, stdin=subprocess.DEVNULL,
                                stdout=stdout, stderr=stderr)

    def run(self, *arguments, **how):
        process = self.start(*arguments, **how)
        out, err = process.communicate(timeout=LIMIT)
        return process.returncode, out, err

    def processes(self):
        """All that has the case's variable, wherever it was started, with its command line."""
        found = {}
        for pid in (int(each) for each in os.listdir("/proc") if each.isdigit()):
            try:
                variables = pathlib.Path(f"/proc/{pid}/environ").read_bytes()
                command = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if self.mark.encode() in variables and pid != os.getpid():
                found[pid] = command
        return found

    def nothing_is_left(self, limit=60):
        until(lambda: not self.processes(), limit, lambda: f"still there: {self.processes()}")

    def ends_of_edges(self):
        """The drun at the far end of each edge: its environment is its login's, so it has no mark."""
        found = []
        for pid in (int(each) for each in os.listdir("/proc") if each.isdigit()):
            try:
                words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if words[1:2] == [b"--started-by-drun"] and words[0].decode() == self.drun:
                found.append(pid)
        return found


def until(condition, limit=60, what=lambda: "it did not happen"):
    deadline = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < deadline, what()
        time.sleep(0.02)


def check(condition, *shown):
    assert condition, "\n".join(str(each) for each in shown)


def arguments_and_environment_arrive_as_they_are(case):
    words = ["", "a b", "it's", '"$HOME" `x` \\ !! *', "two\nlines", "ä", "--nnodes", "-x"]
    folder = case.folder / "a folder's"
    folder.mkdir(exist_ok=True)
    case.folder = folder
    code, out, err = case.run("-H", "127.0.0.2,127.0.0.3", "-x", "ADDED=x=1", "-x", "ADDED2", "python3", "-c",
                              "import os, sys; print(repr((sys.argv[1:], os.getcwd(), [os.environ.get(n) for n in "
                              "('GIVEN', 'ADDED', 'ADDED2', 'SLURM_JOB_NAME', 'HOME')])))", *words,
                              GIVEN=SECRET, SLURM_JOB_NAME="x", ADDED2="two\nlines", HOME="/nowhere")
    wanted = repr((words, str(folder), [SECRET, "x=1", "two\nlines", None, os.path.expanduser("~root")]))
    if os.geteuid() != 0:
        wanted = wanted.replace(os.path.expanduser("~root"), os.path.expanduser("~"))
    check(code == 0 and out.splitlines() == [wanted] * 2, code, out, err, wanted)
    check("hunter2" not in err, err)


def values_are_in_no_command_line(case):
    process = case.start("-H", "127.0.0.2", "sh", "-c", "echo runs; exec sleep 100", GIVEN=SECRET)
    check(process.stdout.readline() == "runs\n")
    check("hunter2" not in subprocess.run(["ps", "axww", "-o", "args"], text=True, check=True, stdout=subprocess.PIPE).stdout)
    process.send_signal(signal.SIGTERM)
    check(process.wait(LIMIT) == 143, process.returncode)
    case.nothing_is_left()


def slots_are_workers_and_the_first_host_has_rank_0(case):
    listed = case.folder / "hosts"
    listed.write_text("# all of them\n127.0.0.3 slots=2\n127.0.0.2 slots=1 max_slots=4\n")
    code, out, err = case.run("--hostfile", str(listed), "sh", "-c",
                              "echo $RANK $WORLD_SIZE $GROUP_RANK ${SSH_CONNECTION% *}")
    found = sorted(re.sub(r"127.0.0.1 \d+ ", "", line) for line in out.splitlines())
    check(code == 0 and found == ["0 3 0 127.0.0.3", "1 3 0 127.0.0.3", "2 3 1 127.0.0.2"], code, out, err)


def the_exit_code_is_the_jobs(case):
    for failing in (0, 1):
        code, _, err = case.run("-H", "127.0.0.2,127.0.0.3", "sh", "-c", f"[ $RANK != {failing} ] || exit 7; exec sleep 100")
        check(code == 7, code, err)
    code, _, err = case.run("-H", "127.0.0.2,127.0.0.3", "./nothing-of-that-name")
    check(code == 127, code, err)
    case.nothing_is_left()


def one_agent_that_never_takes_part_ends_the_job(case):
    code, _, err = case.run("-H", "127.0.0.2,127.0.0.3", "--nproc-per-node", "xpu", "true")
    check(code == 2 and "127" not in err.replace("127.0.0", ""), code, err)
    case.nothing_is_left()


def lines_stay_whole(case):
    line = "0123456789" * 90
    code, out, err = case.run("-H", "127.0.0.2:2,127.0.0.3:2", "sh", "-c",
                              f"for i in $(seq 300); do echo $RANK {line}; echo $RANK {line} >&2; done")
    lines = sorted(out.splitlines())
    check(code == 0 and lines == sorted(f"{rank} {line}" for rank in range(4) for _ in range(300)), code, len(lines))
    said = [each for each in err.splitlines() if not each.startswith("drun: ")]
    check(sorted(said) == lines, len(said))


def lines_stay_whole_in_one_stream_too(case):
    print_both = ("import os, sys\nfor _ in range(2000):\n  for kind, file in (('o', sys.stdout), ('e', sys.stderr)):\n"
                  "    file.write(kind + os.environ['RANK'] * 3000 + '\\n')\n    file.flush()")
    out = case.folder / "out"
    with out.open("w") as both:
        process = case.start("-H", "127.0.0.2,127.0.0.3", "python3", "-c", print_both, stdout=both, stderr=both)
    check(process.wait(LIMIT) == 0, process.returncode)
    lines = sorted(line for line in out.read_text().splitlines() if not line.startswith("drun: "))
    wanted = sorted(kind + rank * 3000 for kind in "oe" for rank in "01" for _ in range(2000))
    check(lines == wanted, len(lines), [line[:20] for line in lines if len(line) != 3001])


def a_reader_that_stops_for_a_while_loses_nothing(case):
    process = case.start("-H", "127.0.0.2,127.0.0.3", "sh", "-c", "head -c 5000000 /dev/zero | tr '\\0' x; echo; echo done >&2")
    errors = []
    reader = threading.Thread(target=lambda: errors.extend(process.stderr))
    reader.start()
    until(lambda: process.poll() is None and len(case.processes()) > 1)
    out = process.stdout.read()
    reader.join()
    check(process.wait(LIMIT) == 0 and len(out) == 10000002, process.returncode, len(out), "".join(errors))


FLOOD = "exec yes 0123456789012345678901234567890123456789"


def until_stalled(process):
    """Nobody reads, and what has come stays the same for a second."""
    before, now = 0, 0
    while now == 0 or now != before:
        check(process.poll() is None)
        time.sleep(1)
        before, now = now, int.from_bytes(fcntl.ioctl(process.stdout, termios.FIONREAD, bytes(4)), sys.byteorder)


def ends_though_nobody_reads(case, process, code, limit):
    said = []
    reader = threading.Thread(target=lambda: said.extend(process.stderr))
    reader.start()
    began = time.monotonic()
    check(process.wait(LIMIT) == code, process.returncode, said)
    took = time.monotonic() - began
    reader.join()
    lost = [line for line in said if "the rest of standard output is lost: nothing was read for " in line]
    check(took < limit and len(lost) == 1, took, said)
    case.nothing_is_left()
    process.stdout.close()


def a_signal_ends_a_job_that_nobody_reads(case):
    for number in (signal.SIGTERM, signal.SIGINT):
        process = case.start("-H", "127.0.0.2,127.0.0.3", "sh", "-c", FLOOD)
        until_stalled(process)
        process.send_signal(number)
        ends_though_nobody_reads(case, process, 128 + number, 30)


def a_job_that_nobody_reads_fails(case):
    process = case.start("-H", "127.0.0.[2-4]", "--fan-out", "1", "sh", "-c", f"[ $RANK != 2 ] || {{ until [ -e fail ]; do sleep 0.1; done; exit 7; }}; {FLOOD}")
    until_stalled(process)
    (case.folder / "fail").touch()
    ends_though_nobody_reads(case, process, 7, 60)


def the_last_words_wait_for_a_slow_reader(case):
    # Without ssh, which has buffers of its own.
    process = case.start("-H", "a,b", "--rdzv-endpoint", f"127.0.0.1:{hosts.free_port()}", "sh", "-c",
                         "head -c 1200000 /dev/zero | tr '\\0' x; echo; touch done-$RANK", launcher="env AT={host}")
    until(lambda: len(list(case.folder.glob("done-*"))) == 2)
    until(lambda: not [command for command in case.processes().values() if "--node-rank" in command])
    until_stalled(process)
    until_stalled(process)  # longer than an end waits for the last words of its agent
    out, err = process.communicate(timeout=LIMIT)
    check(process.returncode == 0 and len(out) == 2400002, process.returncode, len(out), err)


def signals_end_all_hosts(case):
    for number in (signal.SIGINT, signal.SIGTERM):
        process = case.start("-H", "127.0.0.2:2,127.0.0.3:2", "sh", "-c", "echo runs; exec sleep 100")
        for _ in range(4):
            check(process.stdout.readline() == "runs\n")
        process.send_signal(number)
        check(process.wait(LIMIT) == 128 + number, process.returncode, process.stderr.read())
        case.nothing_is_left()


def signals_to_forward_reach_the_workers(case):
    process = case.start("-H", "127.0.0.2,127.0.0.3", "sh", "-c", "trap 'echo got; exit 0' USR1; echo runs; while :; do sleep 0.1; done")
    for _ in range(2):
        check(process.stdout.readline() == "runs\n")
    process.send_signal(signal.SIGUSR1)
    out, err = process.communicate(timeout=LIMIT)
    check(process.returncode == 0 and out == "got\ngot\n", process.returncode, out, err)


def running(case):
    process = case.start("-H", "127.0.0.2,127.0.0.3", "sh", "-c", "echo runs; exec sleep 200")
    for _ in range(2):
        check(process.stdout.readline() == "runs\n")
    return process


def nothing_outlives_a_starter_that_is_killed(case):
    process = running(case)
    process.kill()
    process.communicate(timeout=LIMIT)
    case.nothing_is_left()
    until(lambda: not case.ends_of_edges())


def nothing_outlives_an_ssh_that_is_killed(case):
    process = running(case)
    launchers = [pid for pid, command in case.processes().items() if command.startswith("ssh ") and "127.0.0.3" in command]
    check(len(launchers) == 1, case.processes())
    os.kill(launchers[0], signal.SIGKILL)
    out, err = process.communicate(timeout=LIMIT)
    check(process.returncode == 125 and "drun: error: 127.0.0.3: lost: " in err, process.returncode, out, err)
    case.nothing_is_left()


def nothing_outlives_a_session_that_is_killed(case):
    process = running(case)
    for pid in case.network.sessions("127.0.0.3"):
        os.kill(pid, signal.SIGKILL)
    out, err = process.communicate(timeout=LIMIT)
    check(process.returncode == 125 and "drun: error: 127.0.0.3: lost: " in err, process.returncode, out, err)
    case.nothing_is_left()


def nothing_outlives_an_end_that_is_killed(case):
    process = running(case)
    for pid in case.ends_of_edges()[:1]:
        os.kill(pid, signal.SIGKILL)
    out, err = process.communicate(timeout=LIMIT)
    check(process.returncode == 125 and ": lost: " in err, process.returncode, out, err)
    case.nothing_is_left()


def a_host_that_falls_silent_is_given_up(case):
    process = running(case)
    session = case.network.sessions("127.0.0.3")
    for pid in session:
        os.kill(pid, signal.SIGSTOP)  # as if the network was cut: nothing comes, and nothing is refused
    try:
        out, err = process.communicate(timeout=LIMIT)
        check(process.returncode == 125 and "drun: error: 127.0.0.3: lost: nothing was heard of it for 30 s\n" in err, process.returncode, out, err)
        case.nothing_is_left()
    finally:
        for pid in session:
            os.kill(pid, signal.SIGKILL)


def one_report_is_shown_of_all_hosts(case):
    program = """began() { echo $TORCHELASTIC_RESTART_COUNT.$1; }
        if [ $RANK != 1 ]; then : >$(began $RANK); exec sleep 100; fi
        for each in 0 2 3; do until [ -e $(began $each) ]; do sleep 0.1; done; done
        echo bad >&2; exit 7"""
    code, out, err = case.run("-H", "127.0.0.[2-5]", "--max-restarts", "1", "sh", "-c", program)
    check(code == 7 and out == "", code, out, err)
    lines = [line for line in err.splitlines() if line.startswith("drun: ")]
    kinds = [re.sub(r" .*", "", line[len("drun: "):]) for line in lines]
    check(kinds[:5] == ["started", "round", "stopping", "restart", "round"], err)
    # Different hosts say these: the leader's, the failed rank's, each its own.
    check(sorted(kinds[5:]) == ["job", "ranks", "stopping"], err)
    check(lines[-1].startswith("drun: ranks 0,2-3 were still running"), err)  # each host has told of its own
    check(err.count("  | bad\n") == 1 and err.count("bad\n") == 3, err)
    code, _, err = case.run("-H", "127.0.0.[2-4]", "--nproc-per-node", "xpu", "true")
    check(code == 2 and len(err.splitlines()) == 2, code, err)


def the_report_is_not_lost_with_a_host(case):
    process = case.start("-H", "127.0.0.[2-4]", "sh", "-c", "echo $RANK; until [ $RANK = 2 ] && [ -e fail ]; do sleep 0.1; done; exit 7")
    check(sorted(process.stdout.readline() for _ in range(3)) == ["0\n", "1\n", "2\n"])
    parents = [child for child in case.ends_of_edges() if subprocess.run(["pgrep", "-P", str(child)], stdout=subprocess.DEVNULL).returncode == 0]
    silent = next(pid for pid in parents if b"127.0.0.3 " in pathlib.Path(f"/proc/{pid}/environ").read_bytes())
    os.kill(silent, signal.SIGSTOP)  # nothing that is said there comes
    (case.folder / "fail").touch()
    lines = []
    while not any(line.startswith("drun: job failed: rank 2 ") for line in lines):
        lines.append(process.stderr.readline())
        check(lines[-1], lines)
    os.kill(silent, signal.SIGKILL)
    _, err = process.communicate(timeout=LIMIT)
    check(process.returncode == 7 and "job failed" not in err, process.returncode, lines, err)
    case.nothing_is_left()


def times_stand_at_each_line_once(case):
    code, _, err = case.run("-H", "127.0.0.2,127.0.0.3", "--timestamps", "sh", "-c", "echo bad >&2; exit 7")
    check(code == 7 and len(re.findall(r"job failed", err)) == 1, code, err)
    check(all(re.fullmatch(r"\d{4}-\d\d-\d\dT\S+ (?!\d{4}-).*", line) for line in err.splitlines()), err)


def each_failure_to_start_is_named(case):
    network = case.network
    network.known.write_text("".join(line + "\n" for line in network.known.read_text().splitlines() if "127.0.0.4" not in line))
    code, out, err = case.run("-H", "node1,node3,127.0.0.5,nowhere.invalid,127.0.0.99", "echo", "started")
    check(code == 125 and out == "", code, out, err)
    for wanted in ("node3: its host key is not known; ", "nowhere.invalid: its name cannot be resolved; ",
                   "127.0.0.99: it refuses the connection; ", "nothing was started: the job needs 5 hosts"):
        check(f"drun: error: {wanted}" in err, wanted, err)
    check(len(err.splitlines()) == 4, err)


def a_login_that_is_refused_is_named(case):
    case.network.stop("127.0.0.5")
    case.network.start("127.0.0.5", "DenyUsers *\n")
    code, _, err = case.run("-H", "127.0.0.2,127.0.0.5", "echo", "started")
    check(code == 125 and "drun: error: 127.0.0.5: ssh may not log in; " in err, code, err)
    case.network.stop("127.0.0.5")
    case.network.start("127.0.0.5")


def a_host_without_drun_is_named(case):
    elsewhere = case.folder / "bin"
    elsewhere.mkdir(exist_ok=True)
    drun = shutil.copy(case.drun, elsewhere / "drun-here")
    wrapper = case.folder / "ssh-wrapper"  # the host's shell finds no drun
    wrapper.mkdir(exist_ok=True)
    (wrapper / "ssh").write_text(f"#!/bin/sh\nfor word; do last=$word; done\nexec sh -c \"$(echo \"$last\" | sed 's:{drun}:/nowhere/drun:g')\"\n"
                                 .replace("{drun}", str(drun)))
    (wrapper / "ssh").chmod(0o755)
    case.drun = str(drun)
    code, out, err = case.run("-H", "127.0.0.2", "echo", "started", launcher=str(wrapper / "ssh"), PATH="/usr/bin:/bin")
    check(code == 125 and out == "" and "127.0.0.2: there is no drun; install it there as " in err, code, out, err)


def a_folder_that_is_not_there_is_named(case):
    place = case.folder / "only here"
    place.mkdir()
    gone = case.folder / "gone"
    gone.write_text(f"#!/bin/sh\nmv '{place}' '{case.folder}/moved' 2>/dev/null\nshift\nexec \"$@\"\n")
    gone.chmod(0o755)
    case.folder = place
    code, out, err = case.run("-H", "a,b", "echo", "started", launcher=f"{gone} {{host}}")
    check(code == 125 and out == "" and f"a: its folder cannot be entered there: {place}: No such file or directory\n" in err, code, out, err)
    case.nothing_is_left()


def another_version_is_named(case):
    other = case.folder / "other"
    hello = b"\0drun edge 1\0" + bytes([10, 0, 0, 0, 0, 0, 0, 0, 2]) + b"0.0.1\0\0\0h\0"
    (case.folder / "hello").write_bytes(hello)
    other.write_text(f"#!/bin/sh\ncat {case.folder}/hello\nexec sleep 50\n")
    other.chmod(0o755)
    code, _, err = case.run("-H", "a", "true", launcher=f"{other} {{host}}")
    check(code == 125 and "a: the drun there is another version, 0.0.1, and this is " in err, code, err)
    older = case.folder / "older"
    older.write_text("#!/bin/sh\necho \"drun: error: unknown flag '--started-by-drun'\" >&2\nexit 2\n")
    older.chmod(0o755)
    code, _, err = case.run("-H", "a", "true", launcher=f"{older} {{host}}")
    check(code == 125 and "a: the drun there is another version; " in err, code, err)


def answer(case, name, frames, then="exec sleep 50"):
    """A launcher whose drun answers, in the right version, and says this."""
    version = subprocess.run([case.drun, "--version"], text=True, check=True, stdout=subprocess.PIPE).stdout.split()[1].encode()
    hello = version + b"\0\0\0h\0"
    (case.folder / f"{name}.bytes").write_bytes(b"\0drun edge 1\0" + frame(2, hello) + frames)
    script = case.folder / name
    script.write_text(f"#!/bin/sh\ncat {case.folder}/{name}.bytes\n{then}\n")
    script.chmod(0o755)
    return f"{script} {{host}}"


def frame(kind, payload):
    return len(payload).to_bytes(4, "little") + bytes(4) + bytes([kind]) + payload


def what_is_no_drun_is_named(case):
    code, _, err = case.run("-H", "a", "true", launcher=answer(case, "garbage", b"x" * 20))
    check(code == 125 and "drun: error: a: lost: what it sent is not drun's\n" in err, code, err)
    code, _, err = case.run("-H", "a", "true", launcher=answer(case, "hangs", b"", "exec sleep 50 >&-"))
    check(code == 125 and "drun: error: a: lost: its connection was closed, and did not end\n" in err, code, err)
    talks = case.folder / "talks"
    talks.write_text("#!/bin/sh\nexec yes\n")
    talks.chmod(0o755)
    code, _, err = case.run("-H", "a", "true", launcher=f"{talks} {{host}}")
    check(code == 125 and "drun: error: a: what answers there is no drun (y)\n" in err, code, err)


def what_a_host_says_of_itself_is_short_and_harmless(case):
    code, _, err = case.run("-H", "a", "true", launcher=answer(case, "talks", frame(8, b"\x1b[31mred\n" + b"x" * 5000)))
    check(code == 125 and "drun: error: a: \\x1b[31mred\\nxxx" in err and len(err) < 1500 and "\x1b" not in err, code, err)


def a_login_that_is_closed_says_so(case):
    case.network.stop("127.0.0.5")
    case.network.start("127.0.0.5", "ForceCommand echo; echo This account is closed.; exit 1\n")
    code, _, err = case.run("-H", "127.0.0.5", "true")
    check(code == 125 and "127.0.0.5: ssh ended with exit code 1 before drun answered (This account is closed.)\n" in err, code, err)
    case.network.stop("127.0.0.5")
    case.network.start("127.0.0.5")


def hosts_meet_where_only_ssh_knows_the_name(case):
    code, out, err = case.run("-H", "node1,node2", "sh", "-c", "echo $RANK")
    check(code == 0 and sorted(out.split()) == ["0", "1"] and f", meeting at {os.uname().nodename}:" in err, code, out, err)


def a_launcher_with_quotes(case):
    code, out, err = case.run("-H", "127.0.0.2", "echo", "started", launcher=f"ssh -F '{case.network.config}' -o 'SendEnv A B'")
    check(code == 0 and out == "started\n", code, out, err)
    code, out, err = case.run("-H", "127.0.0.2", "echo", "started", launcher="ssh -o 'ProxyCommand x")
    check(code == 2 and "--launcher" in err and "a ' is not closed" in err, code, err)


def hosts_named_for(reason, err):
    """The hosts of which an error says that; those that fail at about the same time share a line."""
    found = set()
    for line in err.splitlines():
        if line.startswith("drun: error: ") and reason in line:
            found |= set(line.removeprefix("drun: error: ").split(": ")[0].split(", "))
    return found


def a_launcher_that_is_not_there_is_named(case):
    code, _, err = case.run("-H", "a,b", "true", launcher="no-such-launcher {host}")
    named = hosts_named_for("run no-such-launcher: No such file or directory", err)
    check(code == 125 and named == {"a", "b"}, code, err)


def other_commands_reach_hosts_too(case):
    code, out, err = case.run("-H", "127.0.0.2,127.0.0.3", "sh", "-c", "echo $RANK $AT", launcher="env AT={host}")
    check(code == 0 and sorted(out.splitlines()) == ["0 127.0.0.2", "1 127.0.0.3"], code, out, err)


def shells_of_all_kinds_start_it(case):
    for shell in ("/bin/bash", "/bin/dash", "/bin/tcsh", "/usr/bin/fish", "/usr/bin/zsh"):
        if not os.path.exists(shell):
            continue
        case.network.stop("127.0.0.2")
        case.network.start("127.0.0.2", f"ForceCommand echo noise; echo more >&2; exec {shell} -c \"$SSH_ORIGINAL_COMMAND\"\n")
        code, out, err = case.run("-H", "127.0.0.2", "echo", "it's", "here!")
        check(code == 0 and out == "it's here!\n", shell, code, out, err)
    case.network.stop("127.0.0.2")
    case.network.start("127.0.0.2")


def an_elastic_job_goes_on_without_a_host(case):
    process = case.start("-H", "127.0.0.2,127.0.0.3", "--nnodes", "1:2", "--rdzv-conf", "keep_alive_interval=1,last_call_timeout=1",
                         "sh", "-c", "echo runs; [ $WORLD_SIZE = 1 ] || exec sleep 200")
    for _ in range(2):
        check(process.stdout.readline() == "runs\n")
    sessions = case.network.sessions("127.0.0.3")
    case.network.stop("127.0.0.3")  # it does not come back
    for pid in sessions:
        os.kill(pid, signal.SIGKILL)
    out, err = process.communicate(timeout=LIMIT)
    case.network.start("127.0.0.3")
    check(process.returncode == 0 and out == "runs\n" and "127.0.0.3: lost: " in err, process.returncode, out, err)
    check(err.count("it refuses the connection") <= 1, err)
    case.nothing_is_left()


def hosts_start_further_hosts(case):
    code, out, err = case.run("-H", "127.0.0.[2-5]:2", "--fan-out", "1", "sh", "-c",
                              "echo $RANK ${SSH_CONNECTION%% *} ${SSH_CONNECTION% *}; touch at-$RANK; [ $RANK = 7 ] || exec sleep 100; "
                              "until [ $(ls | grep -c at-) = 8 ]; do sleep 0.05; done; exit 5")
    found = sorted(int(line.split()[0]) for line in out.splitlines())
    check(code == 5 and found == list(range(8)), code, out, err)
    check("127.0.0.5" in next(line for line in out.splitlines() if line.startswith("7 ")), out)
    case.nothing_is_left()


def nothing_outlives_the_root_of_a_tree(case):
    process = case.start("-H", "127.0.0.[2-5]", "--fan-out", "1", "sh", "-c", "echo runs; exec sleep 200")
    for _ in range(4):
        check(process.stdout.readline() == "runs\n")
    check(len(case.ends_of_edges()) == 4, case.ends_of_edges())
    process.kill()
    process.communicate(timeout=LIMIT)
    case.nothing_is_left()
    until(lambda: not case.ends_of_edges())


def what_hangs_on_a_lost_host_is_lost_with_it(case):
    process = case.start("-H", "127.0.0.[2-5]", "--fan-out", "1", "sh", "-c", "echo runs; exec sleep 200")
    for _ in range(4):
        check(process.stdout.readline() == "runs\n")
    for pid in case.network.sessions("127.0.0.4"):
        os.kill(pid, signal.SIGKILL)
    out, err = process.communicate(timeout=LIMIT)
    check(process.returncode == 125 and ": error: 127.0.0.4: lost: ssh ended with exit code 255 " in err
          and "127.0.0.5: lost with 127.0.0.4, which had started it (from " in err, process.returncode, out, err)
    case.nothing_is_left()


def a_host_that_is_missing_in_a_tree_is_named_and_no_other(case):
    code, out, err = case.run("-H", "127.0.0.2,127.0.0.3,127.0.0.99,127.0.0.4,127.0.0.5", "--fan-out", "1", "echo", "started")
    check(code == 125 and out == "" and "127.0.0.99: it refuses the connection; " in err, code, out, err)
    check(len(err.splitlines()) == 2, err)
    code, out, err = case.run("-H", "127.0.0.99,127.0.0.3,127.0.0.4", "--nnodes", "2:3", "--fan-out", "1", "echo", "started")
    check(code == 0 and out == "started\n" * 2, code, out, err)


def many_hosts_start_in_a_tree(case):
    names = ",".join(f"h{number}" for number in range(70))
    code, out, err = case.run("-H", names, "--fan-out", "8", "--rdzv-endpoint", f"127.0.0.1:{hosts.free_port()}", "sh", "-c", "echo $RANK $AT",
                              launcher="env AT={host}")
    check(code == 0 and sorted(out.splitlines()) == sorted(f"{rank} h{rank}" for rank in range(70)), code, out, err)
    case.nothing_is_left()


def many_real_logins_make_one_job(case):
    """DRUN_TEST_HOSTS=256 is more than a small machine does in a moment."""
    count = int(os.environ.get("DRUN_TEST_HOSTS", "48"))
    case.network.everywhere()
    listed = case.folder / "hosts"
    listed.write_text("".join(f"127.0.1.{number}\n" for number in range(count)))
    begun = time.monotonic()
    process = case.start("--hostfile", str(listed), "--fan-out", "8", "sh", "-c", "echo $RANK ${SSH_CONNECTION% *}; until [ -e end ]; do sleep 1; done; exit 7")
    lines = [process.stdout.readline() for _ in range(count)]
    print(f"{count} hosts run after {time.monotonic() - begun:.1f} s", flush=True)
    check(sorted(int(line.split()[0]) for line in lines) == list(range(count)), lines)
    check(all(line.split()[3] == f"127.0.1.{line.split()[0]}" for line in lines), lines)
    check(len({line.split()[1] for line in lines}) == 1 or count < 9, lines)
    (case.folder / "end").touch()
    _, err = process.communicate(timeout=LIMIT)
    check(process.returncode == 7 and err.count("job failed: ") == 1, process.returncode, err)
    case.nothing_is_left()
    until(lambda: not case.ends_of_edges())


def far_away(case, host, stubs=None):
    """A launcher to a host that shares nothing but the program's folder: no drun, a cache and a PATH of its own."""
    programs = case.folder / f"programs-{host}"
    programs.mkdir(exist_ok=True)
    for name, script in (stubs or {}).items():
        (programs / name).write_text(f"#!/bin/sh\n{script}\n")
        (programs / name).chmod(0o755)


def launcher_to_far_away(case):
    """As `docker exec -i`: the host, then words. It finds nothing where drun is here."""
    drun = case.folder / "here" / "drun"
    drun.parent.mkdir(exist_ok=True)
    subprocess.run(["strip", "-o", drun, case.drun], check=True)
    case.drun = str(drun)
    script = case.folder / "exec-on"
    script.write_text(f"""#!/bin/sh
[ "$1" = -i ] || exit 9
host=$2
[ "$3 $4" = "sh -c" ] || exit 9
export XDG_CACHE_HOME='{case.folder}'/cache-$host PATH='{case.folder}'/programs-$host:/usr/bin:/bin
[ ! -e '{case.folder}'/limit-$host ] || ulimit -f 8
exec sh -c "$(printf '%s' "$5" | sed 's:{drun}:/nowhere/drun:g')"
""")
    script.chmod(0o755)
    return f"'{script}' -i {{host}}", drun


def copies(case, host):
    return sorted((case.folder / f"cache-{host}" / "drun").glob("*"))


def drun_goes_over_where_it_is_missing(case):
    launcher, drun = launcher_to_far_away(case)
    at = f"127.0.0.1:{hosts.free_port()}"
    code, out, err = case.run("-H", "a,b,c", "--rdzv-endpoint", at, "echo", "started", launcher=launcher)
    check(code == 125 and out == "" and hosts_named_for("there is no drun; ", err) == {"a", "b", "c"} and "--copy-self" in err, code, out, err)
    inodes = None
    for fan_out in ("32", "1"):  # in a tree the copy of one host goes to the next
        code, out, err = case.run("-H", "a,b,c", "--rdzv-endpoint", at, "--copy-self", "--fan-out", fan_out, "echo", "started", launcher=launcher)
        check(code == 0 and out == "started\n" * 3, code, out, err)
        found = [copies(case, host) for host in "abc"]
        check([len(each) for each in found] == [1, 1, 1], found)
        check(all(each[0].read_bytes() == drun.read_bytes() for each in found), found)
        check(inodes in (None, [each[0].stat().st_ino for each in found]), "copied again")
        inodes = [each[0].stat().st_ino for each in found]
    for host in "abc":
        shutil.rmtree(case.folder / f"cache-{host}")
    code, out, err = case.run("-H", "a,b,c", "--rdzv-endpoint", at, "--copy-self", "--fan-out", "1", "echo", "started", launcher=launcher)
    check(code == 0 and out == "started\n" * 3 and [len(copies(case, host)) for host in "abc"] == [1, 1, 1], code, out, err)


def a_drun_of_another_version_is_as_good_as_none(case):
    launcher, _ = launcher_to_far_away(case)
    far_away(case, "a", {"drun": "echo drun 0.0.1"})
    code, out, err = case.run("-H", "a", "--copy-self", "echo", "started", launcher=launcher)
    check(code == 0 and out == "started\n" and len(copies(case, "a")) == 1, code, out, err)


def what_keeps_drun_from_going_over_is_named(case):
    launcher, _ = launcher_to_far_away(case)
    far_away(case, "noexec", {"chmod": "exit 0"})
    far_away(case, "other", {"uname": "echo Linux riscv64"})
    far_away(case, "old", {"mv": "/bin/mv \"$@\"; for file; do :; done; printf '#!/no/such/loader\\n' >\"$file\"; /bin/chmod 755 \"$file\""})
    (case.folder / "limit-full").touch()
    (case.folder / "cache-closed").write_text("no folder")
    for host, why in {"noexec": "the copy of drun does not run there; ", "full": "drun could not be copied there (",
                      "closed": "drun could not be copied there (mkdir: ", "old": "the copy of drun does not run there; ",
                      "other": "it is another kind of machine, Linux riscv64, and this drun is for Linux "}.items():
        code, out, err = case.run("-H", host, "--copy-self", "echo", "started", launcher=launcher)
        check(code == 125 and out == "" and f"drun: error: {host}: {why}" in err, host, code, out, err)
    check(copies(case, "full") == [] and copies(case, "other") == [], copies(case, "full"), copies(case, "other"))


def a_copy_that_is_cut_off_leaves_nothing(case):
    launcher, _ = launcher_to_far_away(case)
    far_away(case, "slow", {"head": f"touch '{case.folder}/asked'; exec cat >/dev/null"})
    process = case.start("-H", "slow", "--copy-self", "echo", "started", launcher=launcher)
    until((case.folder / "asked").exists)
    check(len(copies(case, "slow")) == 1, copies(case, "slow"))
    process.kill()
    process.communicate(timeout=LIMIT)
    until(lambda: not copies(case, "slow"))


def drun_goes_over_through_the_shells_of_logins(case):
    _, drun = launcher_to_far_away(case)
    for shell in ("/bin/bash", "/bin/tcsh", "/usr/bin/fish"):
        if not os.path.exists(shell):
            continue
        cache = case.folder / f"cache-{os.path.basename(shell)}"
        case.network.stop("127.0.0.2")
        case.network.start("127.0.0.2", f"SetEnv XDG_CACHE_HOME={cache} PATH=/usr/bin:/bin\nForceCommand {shell} -c \"$(echo \"$SSH_ORIGINAL_COMMAND\" | "
                                        f"sed s:{drun}:/nowhere:g)\"\n")
        code, out, err = case.run("-H", "127.0.0.2", "--copy-self", "echo", "started")
        check(code == 0 and out == "started\n" and len(list(cache.glob("drun/*"))) == 1, shell, code, out, err)
    case.network.stop("127.0.0.2")
    case.network.start("127.0.0.2")


def a_lost_host_comes_back_while_the_job_runs(case):
    process = case.start("-H", "127.0.0.2,127.0.0.3", "--nnodes", "1:2", "--rdzv-conf", "keep_alive_interval=1,last_call_timeout=1", "sh", "-c",
                         "echo runs $WORLD_SIZE; while [ ! -e end ]; do sleep 0.1; done")
    for _ in range(2):
        check(process.stdout.readline() == "runs 2\n")
    for pid in case.network.sessions("127.0.0.3"):
        os.kill(pid, signal.SIGKILL)
    lines = []
    while not lines or lines[-2:] != ["runs 2\n"] * 2:
        lines.append(process.stdout.readline())
        check(lines[-1], lines, process.stderr.read() if not lines[-1] else "")
    (case.folder / "end").touch()
    out, err = process.communicate(timeout=LIMIT)
    check(process.returncode == 0, process.returncode, out, err)
    check(": error: 127.0.0.3: lost: " in err and "drun: 127.0.0.3: started again\n" in err, err)
    case.nothing_is_left()


def a_host_whose_agent_is_killed_is_lost(case):
    process = running(case)
    agents = [pid for pid, command in case.processes().items() if command.startswith("drun ") and "--node-rank=1" in command]
    os.kill(min(agents), signal.SIGKILL)
    out, err = process.communicate(timeout=LIMIT)
    check(process.returncode == 125 and "its agent was killed by SIGKILL" in err, process.returncode, out, err)
    case.nothing_is_left()


CASES = [value for value in list(globals().values())
         if callable(value) and getattr(value, "__code__", None) and value.__code__.co_varnames[:1] == ("case",)
         and value.__code__.co_argcount == 1 and value.__name__ not in ("running", "launcher_to_far_away")]


def main():
    reason = hosts.why_not()
    if reason:
        print(f"skipped: {reason}")
        return 77
    drun = str(pathlib.Path(sys.argv[1]).resolve() / "drun")
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        network = hosts.Hosts(folder, 4)
        try:
            for each in CASES:
                if sys.argv[2:] and each.__name__ not in sys.argv[2:]:
                    continue
                begun = time.monotonic()
                known = network.known.read_text()
                with tempfile.TemporaryDirectory() as place:
                    case = Case(drun, network, place)
                    try:
                        each(case)
                        print(f"{each.__name__}: ok ({time.monotonic() - begun:.1f} s)", flush=True)
                    except (AssertionError, subprocess.TimeoutExpired) as problem:
                        failures += 1
                        print(f"{each.__name__}: {problem}", flush=True)
                    for pid in case.processes():
                        os.kill(pid, signal.SIGKILL)
                network.known.write_text(known)
        finally:
            network.close()
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
