"""The differences between torchrun and drun that are there on purpose: nothing else may differ.

Each names the row of docs/compatibility.md where users read about it, and its reason. `field`, `torchrun` and `drun`
are regular expressions for the whole text; "(none)" is the value of a field that one of the two does not have.
"""
import dataclasses
import re

NONE = r"\(none\)"


@dataclasses.dataclass(frozen=True)
class Allowed:
    row: str
    reason: str
    field: str
    torchrun: str = ".*"
    drun: str = ".*"
    case: str = ".*"
    before: tuple = (99, 0)  # only with older versions of torch

    def covers(self, version, case, field, torchrun, drun):
        pairs = ((self.case, case), (self.field, field), (self.torchrun, torchrun), (self.drun, drun))
        return version < self.before and all(re.fullmatch(*pair, re.S) for pair in pairs)


ALLOWED = [
    # ---- the environment ----
    Allowed("`DRUN_HEARTBEAT_FILE`", "a program can say that it makes progress",
            r"rank .*: DRUN_HEARTBEAT_FILE", NONE, r"(<folder>/.*heartbeat)?"),
    Allowed("`DRUN_ROUND`", "tells the rounds of one restart count apart",
            r"rank .*: DRUN_ROUND", NONE, r"\d+"),
    Allowed("`NODE_RANK`, `CROSS_*`, `JAX_*`", "programs of other frameworks find their place",
            r"rank .*: (NODE_RANK|CROSS_RANK|CROSS_SIZE|JAX_PROCESS_ID|JAX_NUM_PROCESSES)", NONE, r"\d+"),
    Allowed("`NODE_RANK`, `CROSS_*`, `JAX_*`", "as above, where rank 0 may bind that port",
            r"rank .*: JAX_COORDINATOR_ADDRESS", NONE, r".*:\d+", case="workers_store_of_rank_0|restart_of_two_nodes|resize"),
    Allowed("`TORCHELASTIC_ERROR_FILE` without `--log-dir`", "no litter in the temporary folder",
            r"rank .*: TORCHELASTIC_ERROR_FILE", r"<folder>/.*/error\.json", r"<folder>/tmp/drun_<random>/\d+_\d+_error\.json"),
    Allowed("`MASTER_ADDR`", "needs no working host name",
            r"rank .*: MASTER_ADDR", r"localhost|vm|<host>", r"127\.0\.0\.1"),
    Allowed("Restart count", "one count for the whole job", r"rank [01] of 4, start 2: TORCHELASTIC_RESTART_COUNT", "0", "1",
            case="restart_of_two_nodes"),
    Allowed("Restart count", "so the rounds can be told apart by it",
            r"the workers of a round agree on MASTER_ADDR:MASTER_PORT", "False", "True", case="restart_of_two_nodes"),
    Allowed("Older versions of torchrun", "drun gives the variable's name since torch 2.2",
            r"rank .*: (TORCH_)?NCCL_ASYNC_ERROR_HANDLING(, whole)?", r"1|3|0|\(none\)", r"1|3|0|\(none\)", before=(2, 2)),
    Allowed("Older versions of torchrun", "new in 2.14", r"rank .*: TORCHELASTIC_SIGNALS_TO_HANDLE", NONE,
            "SIGTERM,SIGINT,SIGHUP,SIGQUIT", before=(2, 14)),
    Allowed("Older versions of torchrun", "torch 1.13 shares no store with its workers unless static",
            r"rank .*: TORCHELASTIC_USE_AGENT_STORE", "False", "True", before=(2, 0)),
    Allowed("Older versions of torchrun", "one node without an endpoint is a private job since 2.14",
            r"rank .*: (TORCHELASTIC_RUN_ID|MASTER_PORT)", r"none|<port>|29500", r"<id>|<port>", before=(2, 14)),
    Allowed("`--rdzv-id` of a private job", "a name that was given is kept",
            r"rank .*: TORCHELASTIC_RUN_ID", "<id>|none", "<id>|none", case="documented_single_node"),
    # ---- the program ----
    Allowed("`$$` in the program's arguments", "a shell's process id or a literal dollar is not to change",
            r"rank 0: arguments", r"\['\$', '\$local_rank', '\$'\]", r"\['\$\$', '\$\$local_rank', '\$'\]", case="dollars"),
    Allowed("`--` after the program", "it belongs to the program", r"rank 0: arguments", r"\['x'\]", r"\['--', 'x'\]",
            case="dashes_after_the_script"),
    Allowed("Older versions of torchrun", "the dash came with 2.0", r"rank .*: arguments", r"\['--local_rank=\d', 'x'\]",
            r"\['--local-rank=\d', 'x'\]", case="older_command", before=(2, 0)),
    Allowed("Sessions and process groups", "only the process group matters for signals",
            r"rank .*: leads a process group", "False", "True", before=(2, 0)),
    Allowed("Sessions and process groups", "workers share a session without a terminal", r"rank .*: leads a session", "True", "False"),
    Allowed("Standard input", "workers do not compete for it", r"rank [1-9]: (standard input|descriptors)"),
    # ---- exit codes ----
    Allowed("Exit code after a worker's failure", "failures can be told apart", r"(agent \d: )?exit code", "1", r"[1-9]\d*",
            case="restarts_run_out|failure_stops_the_others|killed_worker|plain_error_file|broken_error_file|restart_of_one_node"),
    Allowed("Exit code when told to stop", "as a shell gives it", "exit code", "1", r"1[2-5]\d", case="told_to_stop_.*|worker_that_.*"),
    Allowed("Usage errors", "one line instead of a traceback", "exit code", "1", "2", case="bad_nodes"),
    Allowed("Program missing / not executable", "as a shell gives it", "exit code", "1", "127", case="missing_.*"),
    # ---- what is left behind ----
    Allowed("Death of the launcher", "the next job needs the devices and ports", "workers end", "False", "True", case="killed_launcher"),
    Allowed("Processes that workers started", "as above", "(others )?left behind", r"[1-9]\d*", "0"),
    # ---- output and error files ----
    Allowed("Log folder of a round", "no log is lost", "rank [01] of 2: TORCHELASTIC_ERROR_FILE", r".*/attempt_0/\d/error\.json",
            r".*/attempt_0\.1/\d/error\.json", case="resize"),
    Allowed("`latest` in the log folder", "the newest run is found without its random name", "file latest", NONE, r"\(a link\)"),
    Allowed("Error files", "a broken one is quoted in the report", "starts", "1", "2", case="broken_error_file"),
]
