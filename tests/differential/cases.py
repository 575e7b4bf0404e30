"""The cases: each starts a job under one launcher and returns what is to be compared, field by field.

A field's name says what it is ("rank 1: MASTER_ADDR"), its value what was seen, with what is random replaced:
<port>, <id>, <folder>. A case that needs flags of newer versions says from which on it can run.
"""
import json
import os
import re
import signal
import socket
import time

from launchers import RECORD_WORKER, WORKER, wait_until

CASES = {}
# Before 2.14 a job without an endpoint meets at a fixed port: such cases run one after the other.
ONE_AT_A_TIME = set()
NOT_COMPARED = {"PWD", "OLDPWD", "SHLVL", "_", "HOME", "PATH", "PYTHON_EXEC"}
RANDOM = re.compile(r"_[a-z0-9_]{8}(/|$)")  # as mkdtemp() makes names
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


def case(since=(0, 0), fixed_port=False):
    def add(function):
        CASES[function.__name__] = (function, since)
        if fixed_port:
            ONE_AT_A_TIME.add(function.__name__)
        return function

    return add


def without_chance(job, name, value, ports=()):
    if name == "MASTER_PORT":
        return "<given port>" if value in ports else "<port>"
    if name == "MASTER_ADDR" and value == socket.getfqdn(socket.gethostname()):
        return "<host>"
    value = RANDOM.sub(r"_<random>\1", UUID.sub("<id>", value.replace(str(job.folder), "<folder>")))
    return re.sub(r"^<folder>/tmp/torchelastic_<random>/", "<folder>/", value)


def environments(job):
    """Fields for each variable that the launcher gave to each worker."""
    fields = {}
    given = [agent.environment for agent in job.agents]
    ports = {port.number for port in job.ports}
    seen = {}
    for note in job.notes("start"):
        who = f"rank {note['rank']} of {note['size']}"
        number = seen[who] = seen.get(who, 0) + 1
        if number > 1:
            who += f", start {number}"
        for name, value in note["environment"].items():
            if name in NOT_COMPARED or any(name in one and one[name] == value for one in given):
                continue
            fields[f"{who}: {name}"] = without_chance(job, name, value, ports)
    last = [note["environment"] for note in job.notes("start")]
    where = {}
    for environment in last:
        key = (environment["WORLD_SIZE"], environment["TORCHELASTIC_RESTART_COUNT"])
        where.setdefault(key, set()).add((environment["MASTER_ADDR"], environment["MASTER_PORT"]))
    fields["the workers of a round agree on MASTER_ADDR:MASTER_PORT"] = all(len(v) == 1 for v in where.values())
    return fields


def codes(agents):
    return {f"agent {index}: exit code": agent.wait() for index, agent in enumerate(agents)}


# ---- the environment ----

@case(fixed_port=True)
def one_worker(job):
    return {"exit code": job.run(WORKER, "a", "b c", ""), **environments(job)}


@case(fixed_port=True)
def standalone(job):
    return {"exit code": job.run("--standalone", "--nproc_per_node=2", "--role=trainer", WORKER), **environments(job)}


@case()
def one_node_with_a_port(job):
    port = job.port()
    code = job.run("--nproc_per_node", "2", "--master_port", port, "--rdzv_id", "job 5", WORKER)
    return {"exit code": code, **environments(job)}


@case()
def one_node_with_an_endpoint(job):
    code = job.run("--nproc_per_node", "2", "--rdzv_backend", "c10d", "--rdzv_endpoint", "localhost:" + job.port(),
                   "--rdzv_id", "job5", WORKER)
    return {"exit code": code, **environments(job)}


@case()
def documented_single_node(job):
    code = job.run("--rdzv_backend=c10d", "--rdzv_endpoint=localhost:0", "--nnodes=1", "--nproc_per_node=2", WORKER)
    return {"exit code": code, **environments(job)}


@case()
def two_nodes(job):
    words = ["--nnodes=2", "--nproc_per_node=2", "--rdzv_backend=c10d", "--rdzv_endpoint=127.0.0.1:" + job.port(),
             "--role=trainer", "--rdzv_id=job77", "--max_restarts=3", "--monitor_interval=0.2", WORKER]
    agents = [job.start(*words), job.start(*words)]
    return {**codes(agents), **environments(job)}


@case()
def two_static_nodes(job):
    port = job.port()
    agents = [job.start("--nnodes=2", "--nproc_per_node=2", f"--node_rank={rank}", "--master_addr=127.0.0.1",
                        f"--master_port={port}", WORKER, f"agent{rank}") for rank in (1, 0)]
    fields = {**codes(agents), **environments(job)}
    for note in job.notes("start"):
        fields[f"rank {note['rank']} of {note['size']}: agent"] = note["arguments"]
    return fields


@case()
def static_nodes_of_different_roles_and_sizes(job):
    port = job.port()
    agents = [job.start("--nnodes=2", f"--nproc_per_node={size}", f"--node_rank={rank}", f"--role={role}",
                        "--rdzv_backend=static", f"--rdzv_endpoint=127.0.0.1:{port}", WORKER)
              for rank, size, role in ((0, 1, "reader"), (1, 3, "trainer"))]
    return {**codes(agents), **environments(job)}


@case()
def values_of_the_user_are_kept(job):
    own = {"OMP_NUM_THREADS": "", "TORCH_NCCL_ASYNC_ERROR_HANDLING": "3", "NCCL_ASYNC_ERROR_HANDLING": "0",
           "RANK": "77", "MASTER_ADDR": "elsewhere", "WORLD_SIZE": "9", "CUDA_VISIBLE_DEVICES": "1,0"}
    code = job.run(*job.one_node(), "--nproc_per_node=2", WORKER, environment=own)
    fields = {"exit code": code, **environments(job)}
    for note in job.notes("start"):
        for name in own:
            fields[f"rank {note['rank']}: {name}, whole"] = note["environment"].get(name)
    return fields


@case()
def settings_from_variables(job):
    own = {"PET_NPROC_PER_NODE": "2", "PET_ROLE": "eval", "PET_RDZV_BACKEND": "c10d",
           "PET_RDZV_ENDPOINT": "localhost:" + job.port(), "PET_RDZV_ID": "from-pet", "PET_MAX_RESTARTS": "4",
           "PET_NNODES": "1", "PET_STANDALONE": "0"}
    return {"exit code": job.run("--role=flag", WORKER, environment=own), **environments(job)}


@case(since=(2, 14))
def virtual_local_rank(job):
    fields = {"exit code": job.run(*job.one_node(), "--nproc_per_node=2", "--virtual_local_rank", WORKER, "${local_rank}",
                                   environment={"CUDA_VISIBLE_DEVICES": "5,3"}), **environments(job)}
    for note in job.notes("start"):
        fields[f"rank {note['rank']}: arguments"] = note["arguments"]
    return fields


@case(since=(2, 0))
def workers_store_of_rank_0(job):
    code = job.run(*job.one_node(), "--nproc_per_node=2", WORKER,
                   environment={"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"})
    return {"exit code": code, **environments(job)}


# ---- restarts and resizing ----

@case()
def restart_of_one_node(job):
    code = job.run(*job.one_node(), "--nproc_per_node=2", "--max_restarts=2", "--monitor_interval=0.1", WORKER,
                   "rank1:start0:wait=first", "rank1:start0:exit=3", "rank1:start1:wait=second", "rank1:start1:exit=4",
                   "rank0:start0:mark=first", "rank0:start0:sleep", "rank0:start1:mark=second", "rank0:start1:sleep")
    starts = {}
    for note in job.notes("start"):
        starts[note["rank"]] = starts.get(note["rank"], 0) + 1
    return {"exit code": code, **{f"rank {rank}: starts": n for rank, n in starts.items()}, **environments(job)}


@case()
def restarts_run_out(job):
    code = job.run(*job.one_node(), "--nproc_per_node=1", "--max_restarts=1", "--monitor_interval=0.1", WORKER, "exit=5")
    counts = [note["environment"]["TORCHELASTIC_RESTART_COUNT"] for note in job.notes("start")]
    return {"exit code": code, "restart counts": counts}


@case()
def restart_of_two_nodes(job):
    words = ["--nnodes=2", "--nproc_per_node=2", "--rdzv_backend=c10d", "--rdzv_endpoint=127.0.0.1:" + job.port(),
             "--rdzv_conf=last_call_timeout=1", "--max_restarts=1", "--monitor_interval=0.1", WORKER,
             "rank3:start0:wait=all", "rank3:start0:exit=3", "start0:sleep"]
    # Where the store is shared, torchrun's own restart is a matter of chance.
    own = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
    agents = [job.start(*words, environment=own), job.start(*words, environment=own)]
    job.wait_for_notes("sleeping", 3)
    job.mark("all")
    return {**codes(agents), **environments(job)}


@case()
def resize(job):
    words = ["--nnodes=1:2", "--nproc_per_node=1", "--rdzv_backend=c10d", "--rdzv_endpoint=127.0.0.1:" + job.port(),
             "--rdzv_conf=last_call_timeout=1", "--max_restarts=1", "--monitor_interval=0.1", "--rdzv_id=grows",
             f"--log_dir={job.folder}/logs", WORKER, "wait=both"]
    own = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
    agents = [job.start(*words, environment=own)]
    job.wait_for_notes("start", 1)
    agents.append(job.start(*words, environment=own))
    job.wait_for_notes("start", 3)
    job.mark("both")
    return {**codes(agents), **environments(job)}


# ---- the program ----

def program_fields(job):
    fields = {}
    for note in job.notes("start"):
        who = f"rank {note['rank']}"
        fields[f"{who}: arguments"] = note["arguments"]
        fields.update({f"{who}: {name}": value for name, value in note["process"].items()})
    return fields


@case()
def arguments_and_process(job):
    code = job.run(*job.one_node(), "--nproc_per_node=2", WORKER, "${local_rank}", "$local_rank", "x${local_rank}y$local_rank.z",
                   "$other", "${LOCAL_RANK}", "$local_rankx", "a b", "", "--nnodes", "7", "-x", "x", "--", "y",
                   umask=0o27)
    return {"exit code": code, **program_fields(job)}


@case()
def dollars(job):
    return {"exit code": job.run(*job.one_node(), WORKER, "$$", "$$local_rank", "$"), **program_fields(job)}


@case(fixed_port=True)
def dashes_before_the_script(job):
    return {"exit code": job.run("--nproc_per_node=1", "--", WORKER, "x"), **program_fields(job)}


@case()
def dashes_after_the_script(job):
    return {"exit code": job.run(*job.one_node(), "--nproc_per_node=1", WORKER, "--", "x"), **program_fields(job)}


@case(fixed_port=True)
def abbreviations(job):
    code = job.run("--nproc_p=2", "--max_r", "1", "--monitor_=0.1", "--stand", WORKER, "--nproc", "9")
    return {"exit code": code, **program_fields(job), **environments(job)}


@case()
def module(job):
    code = job.run(*job.one_node(), "--nproc_per_node=1", "-m", "worker", "--flag",
                   environment={"PYTHONPATH": os.path.dirname(WORKER)})
    return {"exit code": code, **program_fields(job)}


@case()
def no_python(job):
    code = job.run(*job.one_node(), "--nproc_per_node=2", "--no_python", "sh", "-c", 'echo "$RANK $LOCAL_RANK $0 $1"', "${local_rank}", "x")
    return {"exit code": code, "lines": sorted(job.agents[0].out)}


@case()
def standard_input(job):
    reader, writer = os.pipe()
    os.write(writer, b"a line\n")
    os.close(writer)
    code = job.run(*job.one_node(), "--nproc_per_node=1", WORKER, "stdin", stdin=reader)
    os.close(reader)
    return {"exit code": code, "read": [note["text"] for note in job.notes("stdin")]}


@case(fixed_port=True)
def older_command(job):
    code = job.run("--nproc_per_node=2", WORKER, "x", launch=True)
    return {"exit code": code, **{key: value for key, value in program_fields(job).items() if "arguments" in key}}


@case(fixed_port=True)
def older_command_with_use_env(job):
    code = job.run("--nproc_per_node=2", "--use_env", WORKER, "x", launch=True)
    return {"exit code": code, **{key: value for key, value in program_fields(job).items() if "arguments" in key},
            **environments(job)}


# ---- exit codes ----

@case()
def failure_stops_the_others(job):
    agent = job.start(*job.one_node(), "--nproc_per_node=3", "--monitor_interval=0.1", WORKER, "rank2:wait=all asleep",
                      "rank2:exit=7", "sleep")
    job.wait_for_notes("sleeping", 2)
    job.mark("all asleep")
    return {"exit code": agent.wait(), "told to stop": sorted((note["rank"], note["name"]) for note in job.notes("signal")),
            "left behind": len(job.left_behind())}


@case()
def killed_worker(job):
    return {"exit code": job.run(*job.one_node(), "--nproc_per_node=1", "--monitor_interval=0.1", WORKER, "kill=SIGKILL"),
            "root cause": "SIGKILL" in "\n".join(job.agents[0].err)}


@case()
def early_success_of_one(job):
    agent = job.start(*job.one_node(), "--nproc_per_node=2", "--monitor_interval=0.1", WORKER, "rank0:exit=0",
                      "rank1:wait=the other ended", "rank1:exit=0")
    job.wait_for_notes("start", 2)
    first = next(note["pid"] for note in job.notes("start") if note["rank"] == "0")
    wait_until(lambda: first not in job.left_behind(), "the end of rank 0")
    job.mark("the other ended")
    return {"exit code": agent.wait(), "starts": len(job.notes("start"))}


@case()
def missing_script(job):
    return {"exit code": job.run(*job.one_node(), "--nproc_per_node=1", "--monitor_interval=0.1", "/nowhere/script.py")}


@case()
def missing_program(job):
    return {"exit code": job.run(*job.one_node(), "--nproc_per_node=1", "--no_python", "/nowhere/program")}


@case()
def unknown_flag(job):
    return {"exit code": job.run("--no_such_flag", "1", WORKER), "starts": len(job.notes("start"))}


@case()
def bad_number(job):
    return {"exit code": job.run("--max_restarts", "many", WORKER), "starts": len(job.notes("start"))}


@case()
def bad_nodes(job):
    return {"exit code": job.run("--nnodes", "2:1", WORKER), "starts": len(job.notes("start"))}


@case()
def no_script(job):
    return {"exit code": job.run(*job.one_node(), "--nproc_per_node=2")}


# ---- signals ----

def stopped_by(job, name, *flags, **options):
    agent = job.start(*job.one_node(), "--nproc_per_node=2", "--monitor_interval=0.1", *flags, WORKER, "child", "sleep",
                      **options)
    job.wait_for_notes("sleeping", 2)
    agent.signal(signal.Signals[name])
    return {"exit code": agent.wait(), "workers got": sorted((note["rank"], note["name"]) for note in job.notes("signal")),
            "workers left behind": len([pid for pid in job.left_behind() if pid in {n["pid"] for n in job.notes("start")}]),
            "others left behind": len(job.left_behind())}


@case()
def told_to_stop_by_sigterm(job):
    return stopped_by(job, "SIGTERM")


@case()
def told_to_stop_by_sigint(job):
    return stopped_by(job, "SIGINT")


@case()
def told_to_stop_by_sighup(job):
    return stopped_by(job, "SIGHUP")


@case()
def told_to_stop_by_sigquit(job):
    # Unless it is named, drun shows where the workers are.
    return stopped_by(job, "SIGQUIT", environment={"PET_SIGNALS_TO_HANDLE": "SIGTERM,SIGINT,SIGHUP,SIGQUIT"})


@case(since=(2, 14))
def told_to_stop_by_a_chosen_signal(job):
    return stopped_by(job, "SIGUSR1", "--signals_to_handle=SIGTERM,SIGUSR1")


@case(since=(2, 14))
def worker_that_does_not_stop(job):
    agent = job.start(*job.one_node(), "--nproc_per_node=1", "--shutdown_timeout=1", WORKER, "ignore=SIGTERM",
                      "mark=ready", "wait=never")
    job.wait_for_notes("start", 1)
    wait_until((job.notes_folder / "ready").exists, "the worker that ignores SIGTERM")
    agent.signal(signal.SIGTERM)
    return {"exit code": agent.wait(), "left behind": len(job.left_behind())}


@case()
def killed_launcher(job):
    agent = job.start(*job.one_node(), "--nproc_per_node=2", WORKER, "sleep")
    job.wait_for_notes("sleeping", 2)
    agent.signal(signal.SIGKILL)
    agent.wait()
    deadline = time.monotonic() + (30 if job.launcher == "drun" else 2)
    while job.left_behind() and time.monotonic() < deadline:
        time.sleep(0.02)
    return {"workers end": not job.left_behind()}


# ---- output and files ----

def tree(job, folder):
    """The files below a log folder, with what is in them; folders that are empty, too."""
    fields = {}
    base = job.folder / folder
    for path in sorted(base.rglob("*")):
        name = RANDOM.sub(r"_<random>\1", UUID.sub("<id>", str(path.relative_to(base))))
        if path.is_symlink():
            fields["file " + name] = "(a link)"
        elif path.is_dir():
            if not any(path.iterdir()):
                fields["folder " + name] = "(empty)"
        elif path.name == "error.json":
            fields["file " + name] = sorted(json.loads(path.read_text(encoding="utf-8")))
        else:
            fields["file " + name] = path.read_text(encoding="utf-8")
    return fields


TALK = (WORKER, "print=out of ${local_rank}", "error=err of ${local_rank}")


def shown(job):
    # torchrun's own warnings come with their place in its source, or a logger's name.
    own = re.compile(r"^(\w\d{4} |WARNING:|drun: |\*{10,}|Setting OMP|\s*$)")
    return {"stdout": sorted(job.agents[0].out),
            "stderr": sorted(line for line in job.agents[0].err if not own.match(line) and "OMP_NUM_THREADS" not in line)}


@case()
def plain_output(job):
    return {"exit code": job.run(*job.one_node(), "--nproc_per_node=2", *TALK), **shown(job)}


@case()
def redirects(job):
    code = job.run("--nproc_per_node=2", "--rdzv_id=logs", "--rdzv_backend=c10d", "--rdzv_endpoint=localhost:0",
                   f"--log_dir={job.folder}/logs", "-r", "3", *TALK)
    return {"exit code": code, **shown(job), **tree(job, "logs")}


@case()
def redirects_by_rank(job):
    code = job.run(*job.one_node(), "--nproc_per_node=3", f"--log_dir={job.folder}/logs", "--redirects", "0:1,1:2", *TALK)
    return {"exit code": code, **shown(job), **tree(job, "logs")}


@case()
def tee(job):
    code = job.run(*job.one_node(), "--nproc_per_node=2", "--role=trainer", f"--log_dir={job.folder}/logs", "-t3", *TALK)
    return {"exit code": code, **shown(job), **tree(job, "logs")}


@case()
def tee_and_redirects_by_rank(job):
    code = job.run(*job.one_node(), "--nproc_per_node=3", f"--log_dir={job.folder}/logs", "--tee", "0:3,2:1", "--redirects=1:3", *TALK)
    return {"exit code": code, **shown(job), **tree(job, "logs")}


@case()
def logs_of_every_attempt(job):
    code = job.run(*job.one_node(), "--nproc_per_node=1", "--max_restarts=1", "--monitor_interval=0.1", f"--log_dir={job.folder}/logs",
                   "-r3", *TALK, "start0:exit=3")
    return {"exit code": code, **tree(job, "logs")}


@case(since=(2, 0))
def filter_by_rank(job):
    code = job.run(*job.one_node(), "--nproc_per_node=3", f"--log_dir={job.folder}/logs", "--tee=0:3,1:3", "--local_ranks_filter=1", *TALK)
    return {"exit code": code, **shown(job), **tree(job, "logs")}


@case(since=(2, 0))
def prefix_from_a_variable(job):
    code = job.run(*job.one_node(), "--nproc_per_node=2", "--role=r", "-t3", f"--log_dir={job.folder}/logs", *TALK,
                   environment={"TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE": "<${role_name}|${local_rank}|${rank}|$x> "})
    return {"exit code": code, **shown(job)}


@case(since=(2, 14))
def prefix_from_the_flag(job):
    code = job.run(*job.one_node(), "--nproc_per_node=2", "-t3", f"--log_dir={job.folder}/logs",
                   "--log_line_prefix_template=${hostname}/${rank}: ", *TALK)
    return {"exit code": code, **shown(job)}


@case(since=(2, 14))
def copied_lines(job):
    code = job.run(*job.one_node(), "--nproc_per_node=2", "-t3", f"--log_dir={job.folder}/logs", "--duplicate_stdout_filters=out of 1,no such",
                   "--duplicate_stderr_filters=of", *TALK)
    fields = {"exit code": code, **shown(job), **tree(job, "logs")}
    return {name: sorted(value.splitlines()) if "filtered" in name else value for name, value in fields.items()}


@case()
def no_logs_at_all(job):
    code = job.run(*job.one_node(), "--nproc_per_node=1", "--log_dir=/dev/null", WORKER) if job.release.version > (2, 0) else 0
    return {"exit code": code, **environments(job)}


# ---- error files ----

def error_file(path):
    """An error file with what depends on the moment and the version of Python left out."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        return type(problem).__name__
    message = content.get("message")
    if isinstance(message, dict):
        extra = message.get("extraInfo", {})
        message = {**message, "extraInfo": sorted(extra)}
        if "py_callstack" in extra:
            message["last line of the callstack"] = extra["py_callstack"].strip().splitlines()[-1]
    return json.dumps({**content, "message": message, **({"timestamp": "<time>"} if "timestamp" in content else {})},
                      sort_keys=True)


@case()
def exception_under_record(job):
    copy = job.folder / "copy.json"
    code = job.run(*job.one_node(), "--nproc_per_node=2", "--monitor_interval=0.1", f"--log_dir={job.folder}/logs",
                   RECORD_WORKER, environment={"TORCHELASTIC_ERROR_FILE": str(copy)})
    written = list((job.folder / "logs").rglob("error.json"))
    return {"exit code": code, "error files": [str(path).rsplit("_", 1)[-1] for path in written],
            "error file": error_file(written[0]) if written else None, "copy": error_file(copy),
            "the report names the exception": any("ValueError: bad value 42" in line for line in job.agents[0].err)}


@case()
def plain_error_file(job):
    copy = job.folder / "copy.json"
    code = job.run(*job.one_node(), "--nproc_per_node=1", "--monitor_interval=0.1", WORKER,
                   'errorfile={"message": "disk is full", "timestamp": 1700000000}', "exit=9",
                   environment={"TORCHELASTIC_ERROR_FILE": str(copy)})
    return {"exit code": code, "copy": error_file(copy),
            "the report has the message": any("disk is full" in line for line in job.agents[0].err)}


@case()
def broken_error_file(job):
    code = job.run(*job.one_node(), "--nproc_per_node=1", "--monitor_interval=0.1", "--max_restarts=1", WORKER,
                   "errorfile={not json", "exit=9")
    return {"exit code": code, "starts": len(job.notes("start"))}
