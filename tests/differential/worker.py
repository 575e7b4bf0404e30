"""What the jobs of the differential test run: each worker writes down what it was given, and then does as told.

usage: worker.py WHAT...        in order, each one of
  exit=CODE kill=SIGNAL         ends so
  print=TEXT error=TEXT         a line on stdout, on stderr
  wait=FILE                     until that file exists below $DIFF_OUT
  mark=FILE                     creates it
  sleep                         until a signal comes, whose name is written down
  ignore=SIGNAL                 that signal has no effect from here on
  errorfile=TEXT                TEXT into $TORCHELASTIC_ERROR_FILE
  stdin                         writes down what it can read from its standard input
  child                         starts a process that does nothing for long
Each may be limited, as in "rank1:exit=3", "start0:exit=3" or "rank1:start0:exit=3": to that rank, and to the
worker that is the first (start0) with its rank and world size. Other arguments are only written down.
"""
import json
import os
import re
import signal
import stat
import subprocess
import sys
import tempfile
import time

OUT = os.environ["DIFF_OUT"]
TIME_LIMIT = 200


def note(**fields):
    """A file of its own, complete when it gets its name."""
    rank, size = os.environ.get("RANK", "-"), os.environ.get("WORLD_SIZE", "-")
    fields.update(rank=rank, size=size, pid=os.getpid(), time=time.time_ns())
    handle, path = tempfile.mkstemp(dir=OUT, prefix="new.")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump(fields, file)
    os.rename(path, path.replace("new.", "note."))


def starts_before():
    """How many workers with this rank and this world size there were before this one."""
    rank, size = os.environ["RANK"], os.environ["WORLD_SIZE"]
    path = os.path.join(OUT, f"starts.{size}.{rank}")
    with open(path, "a+", encoding="ascii") as file:
        file.write("x")
        file.flush()
        return file.tell() - 1


def descriptor(number):
    try:
        mode = os.fstat(number).st_mode
    except OSError:
        return "closed"
    for name, test in (("file", stat.S_ISREG), ("pipe", stat.S_ISFIFO), ("device", stat.S_ISCHR)):
        if test(mode):
            return name
    return "other"


def mask(name):
    with open("/proc/self/status", encoding="ascii") as status:
        return next(line.split()[1] for line in status if line.startswith(name))


def own_process():
    umask = os.umask(0)
    os.umask(umask)
    return {
        "folder": os.getcwd(),
        "umask": oct(umask),
        "descriptors": sorted(n for n in map(int, os.listdir("/proc/self/fd")) if descriptor(n) != "closed"),
        "standard input": descriptor(0),
        "leads a process group": os.getpgid(0) == os.getpid(),
        "leads a session": os.getsid(0) == os.getpid(),
        "signals blocked": mask("SigBlk"),
        "interpreter": "the given one" if sys.executable == os.environ["DIFF_PYTHON"] else sys.executable,
        "unbuffered": sys.stdout.write_through,
    }


def until_signal():
    """The first signal's name is written down; it then has its usual effect."""

    def caught(number, _frame):
        note(kind="signal", name=signal.Signals(number).name)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1):
        signal.signal(number, caught)
    note(kind="sleeping")
    time.sleep(TIME_LIMIT)


def write_line(number, text):
    """In one piece: torchrun's --tee prefixes every piece that it finds."""
    os.write(number, f"{text}\n".encode())


def do(what, value):
    if what == "exit":
        sys.stdout.flush()
        os._exit(int(value))
    elif what == "kill":
        os.kill(os.getpid(), signal.Signals[value])
    elif what == "print":
        write_line(1, value)
    elif what == "error":
        write_line(2, value)
    elif what == "mark":
        open(os.path.join(OUT, value), "w", encoding="ascii").close()
    elif what == "wait":
        deadline = time.monotonic() + TIME_LIMIT
        while not os.path.exists(os.path.join(OUT, value)):
            if time.monotonic() > deadline:
                os._exit(99)
            time.sleep(0.01)
    elif what == "sleep":
        until_signal()
    elif what == "ignore":
        signal.signal(signal.Signals[value], signal.SIG_IGN)
    elif what == "errorfile":
        with open(os.environ["TORCHELASTIC_ERROR_FILE"], "w", encoding="utf-8") as file:
            file.write(value)
    elif what == "stdin":
        note(kind="stdin", text=sys.stdin.read())
    elif what == "child":
        subprocess.Popen(["sleep", str(TIME_LIMIT)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def main():
    start = starts_before()
    note(kind="start", start=start, environment=dict(os.environ), arguments=sys.argv[1:], process=own_process())
    for argument in sys.argv[1:]:
        limits = re.match(r"(?:rank(\d+):)?(?:start(\d+):)?", argument)
        if limits[1] not in (None, os.environ["RANK"]) or limits[2] not in (None, str(start)):
            continue
        what, _, value = argument[limits.end():].partition("=")
        do(what, value)


if __name__ == "__main__":
    main()
