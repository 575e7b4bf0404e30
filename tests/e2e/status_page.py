"""The status page of real jobs, as curl, Debian's Prometheus and a headless Chromium see it.

usage: status_page.py BIN_FOLDER PAGE_HTML
"""
import contextlib
import functools
import http.client
import http.server
import json
import os
import pathlib
import re
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.request

from browser import PATIENCE, Tab, chromium, environment, need

BIN, PAGE = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
STAY = ["sh", "-c", "exec sleep 1000"]


def eventually(what):
    """What `what` returns once that is true; errors of connections count as not yet."""
    end = time.monotonic() + PATIENCE
    while True:
        error = None
        try:
            if result := what():
                return result
        except (OSError, http.client.HTTPException) as caught:
            error = caught
        if time.monotonic() > end:
            raise AssertionError(f"it did not come in {PATIENCE} s: {error}")
        time.sleep(0.05)


class Job:
    """drun, until the end of the `with`; its lines on standard error are read as they come."""

    def __init__(self, *arguments, before=(), **variables):
        self.process = subprocess.Popen([*before, BIN / "drun", *arguments], env={**environment(), **variables}, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.said = ""
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.process.stderr:
            self.said += line

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def end(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=PATIENCE)
        self.reader.join()
        self.process.stderr.close()

    def port(self):
        return int(eventually(lambda: re.search(r"status is at http://127\.0\.0\.1:(\d+)/", self.said))[1])


def get(port, path, method="GET", **headers):
    """The status, the text and the headers."""
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers=headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return answer.status, answer.read().decode(), answer.headers
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode(), error.headers


def status(port):
    return json.loads(get(port, "/status.json")[1])


def raw(port, text):
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as connection:
        connection.sendall(text)
        return b"".join(iter(lambda: connection.recv(65536), b"")).decode()


def until_running(port):
    return eventually(lambda: (job := status(port))["state"] == "running" and job)


@contextlib.contextmanager
def reserved_port():
    """Nobody else is given it; drun can bind it."""
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]


class Answers(unittest.TestCase):
    def test_one_node(self):
        with Job("--status-listen", "0", "--nproc-per-node", "3", *STAY) as job:
            port = job.port()
            found = until_running(port)
            self.assertEqual(found["round"]["world_size"], 3)
            self.assertEqual([node["ranks"] for node in found["nodes"]], [[0, 2]])
            eventually(lambda: get(port, "/readyz")[0] == 200)
            self.assertEqual(get(port, "/healthz")[:2], (200, "ok\n"))
            self.assertEqual(get(port, "/readyz")[:2], (200, "running\n"))
            self.assertEqual(get(port, "/nothing")[0], 404)
            code, page, headers = get(port, "/")
            self.assertEqual((code, page), (200, PAGE.read_text(encoding="utf-8")))
            self.assertIn("default-src 'none'", headers["Content-Security-Policy"])
            self.assertIsNone(headers["Access-Control-Allow-Origin"])
            head = raw(port, b"HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            self.assertTrue(head.endswith("\r\n\r\n"), head)
            self.assertIn(f"Content-Length: {PAGE.stat().st_size}\r\n", head)
            self.assertIn("drun_rank_state", get(port, "/metrics?ranks=1")[1])
            self.assertNotIn("drun_rank_state", get(port, "/metrics")[1])

    def test_what_is_not_for_it(self):
        with Job("--status-listen", "0", *STAY) as job:
            port = job.port()
            self.assertEqual(get(port, "/status.json", Host="evil.example")[0], 421)
            self.assertTrue(raw(port, b"POST / HTTP/1.1\r\nHost: localhost\r\n\r\n").startswith("HTTP/1.1 405 "))
            self.assertTrue(raw(port, b"\x16\x03\x01\x02\x00").startswith("HTTP/1.1 400 "))
            self.assertTrue(raw(port, b"GET /" + b"a" * 100_000).startswith("HTTP/1.1 431 "))
            # Those who say nothing keep nobody out, however many they are.
            with contextlib.ExitStack() as silent:
                for _ in range(100):
                    connection = silent.enter_context(socket.create_connection(("127.0.0.1", port)))
                    connection.sendall(b"GET")
                self.assertEqual(get(port, "/healthz")[0], 200)

    def test_every_agent_tells_what_drunctl_tells(self):
        with reserved_port() as store:
            place = ["--nnodes", "2", "--rdzv-endpoint", f"127.0.0.1:{store}", "--rdzv-id", "page"]
            with Job("--status-listen", "0", *place, *STAY) as first:
                port = first.port()
                waiting = eventually(lambda: (job := status(port))["round"]["waiting"] and job["nodes"] and job)
                self.assertEqual(waiting["state"], "gathering")
                self.assertIn("1 of 2 nodes", waiting["round"]["waiting"])
                code, phase, _ = get(port, "/readyz")
                self.assertEqual((code, phase), (503, "gathering\n"))
                with Job("--status-listen", "0", *place, *STAY) as second:
                    other = second.port()
                    until_running(port)
                    until_running(other)
                    for each in (port, other):
                        eventually(lambda each=each: status(each) == self.by_drunctl(store))

    def by_drunctl(self, store):
        told = json.loads(subprocess.run([BIN / "drunctl", "--json", "--endpoint", f"127.0.0.1:{store}", "status"],
                                         env=environment(), capture_output=True, check=True).stdout)
        for node in told["nodes"]:  # what the store alone knows
            self.assertLess(node.pop("word_age_ms"), node.pop("lease_ms"))
        return told

    def test_of_the_agents_of_a_machine_one_has_the_port(self):
        with reserved_port() as port, Job("--status-listen", str(port), "--local-nodes", "3", *STAY) as job:
            found = eventually(lambda: (job := status(port))["state"] == "running" and job)
            self.assertEqual(len(found["nodes"]), 3)
            self.assertNotIn("--status-listen:", job.said)

    def test_a_file_is_no_socket(self):
        with Job("--status-listen", "unix:/dev/null", "true") as job:
            self.assertEqual(job.process.wait(timeout=PATIENCE), 0)
        self.assertIn("cannot listen at /dev/null, which is no socket: File exists", job.said)

    def test_a_socket_in_a_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "page")
            with socket.socket(socket.AF_UNIX) as left_behind:
                left_behind.bind(path)
            with Job("--status-listen", "unix:" + path, *STAY) as job:
                eventually(lambda: "status is at unix:" in job.said)
                self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
                for host, code in ((b"localhost:9000", b"200"), (b"evil.example", b"421")):  # ssh -L may lead a browser here
                    with socket.socket(socket.AF_UNIX) as connection:
                        connection.connect(path)
                        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: " + host + b"\r\n\r\n")
                        answer = b"".join(iter(lambda: connection.recv(65536), b""))
                    self.assertTrue(answer.startswith(b"HTTP/1.1 " + code), answer)
                # One that somebody uses is not taken.
                with Job("--status-listen", "unix:" + path, *STAY) as other:
                    eventually(lambda: "--status-listen: cannot listen at" in other.said)
            self.assertFalse(os.path.exists(path))


TOKEN = "a-secret+of/this=job.and-no-other"


@functools.cache
def page_key(token=TOKEN):
    return subprocess.run([BIN / "drunctl", "page-key"], env={**environment(), "DRUN_TOKEN": token}, capture_output=True, check=True,
                          text=True).stdout.strip()


def post(port, key=None, **headers):
    """With the key of TOKEN, unless there is another one, or ""."""
    key = page_key() if key is None else key
    return get(port, "/stacks", "POST", **({"Authorization": "Bearer " + key} if key else {}), **headers)


class Stacks(unittest.TestCase):
    """POST /stacks"""

    def test_of_all_nodes(self):
        with Job("--status-listen", "0", "--rdzv-id", "where", "--local-nodes", "2", "--nproc-per-node", "2", *STAY,
                 DRUN_TOKEN=TOKEN) as job:
            port = job.port()
            until_running(port)
            code, text, headers = eventually(lambda: (got := post(port))[0] == 200 and "ranks 0-3" in got[1] and got)
        self.assertEqual(code, 200)
        self.assertEqual(headers["Content-Type"], "text/plain; charset=utf-8")
        self.assertRegex(text, r"\Ajob where: stacks of ranks 0-3 on ")
        self.assertRegex(text, r"(?m)^  S +\w+ +\w+ .* ranks 0-3$")
        self.assertNotIn(TOKEN, job.said)

    def test_it_is_what_drunctl_tells(self):
        with Job("--status-listen", "0", "--rdzv-id", "same", "--nproc-per-node", "2", *STAY, DRUN_TOKEN=TOKEN) as job:
            port = job.port()
            until_running(port)
            eventually(lambda: get(port, "/readyz")[0] == 200)

            def by_drunctl():
                return subprocess.run([BIN / "drunctl", "stacks", "same"], env=environment(), capture_output=True, check=True,
                                      text=True).stdout
            without_times = lambda text: re.sub(r"  +(last output|\S+ m?s( - \S+ m?s)?|-)?  +", "  ", text)
            eventually(lambda: without_times(post(port)[1]) == without_times(by_drunctl()))

    def test_several_who_ask_share_one_look(self):
        with Job("--status-listen", "0", "--nproc-per-node", "2", *STAY, DRUN_TOKEN=TOKEN) as job:
            port = job.port()
            eventually(lambda: get(port, "/readyz")[0] == 200)
            request = f"POST /stacks HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {page_key()}\r\nContent-Length: 0\r\n\r\n"
            with contextlib.ExitStack() as opened:
                connect = lambda: opened.enter_context(socket.create_connection(("127.0.0.1", port), timeout=PATIENCE))
                asking = [connect() for _ in range(8)]
                for each in asking:
                    each.sendall(request.encode())
                # Connections without a request push out one another, and nobody who waits for an answer.
                for _ in range(100):
                    connect()
                codes = [b"".join(iter(lambda: each.recv(65536), b"")).split()[1] for each in asking]
        self.assertEqual(codes, [b"200"] * 8)

    def test_without_a_token_there_is_none(self):
        with Job("--status-listen", "0", *STAY) as job:
            port = job.port()
            code, _, headers = post(port)
            self.assertEqual((code, headers["Allow"]), (405, "GET, HEAD"))
            self.assertEqual(get(port, "/stacks")[0], 404)
            self.assertIn('data-stacks="no"', get(port, "/")[1])

    def test_who_may_not(self):
        with Job("--status-listen", "0", *STAY, DRUN_TOKEN=TOKEN) as job:
            port = job.port()
            eventually(lambda: get(port, "/readyz")[0] == 200)
            self.assertIn('data-stacks="yes"', get(port, "/")[1])
            for method in ("GET", "HEAD"):
                code, _, headers = get(port, "/stacks", method)
                self.assertEqual((code, headers["Allow"]), (405, "POST"))
            self.assertEqual(get(port, "/", "POST", Authorization="Bearer " + page_key())[0], 405)
            self.assertEqual(post(port, Origin="http://evil.example")[0], 403)
            self.assertEqual(post(port, Host="evil.example")[0], 421)
            self.assertTrue(raw(port, b"POST /stacks HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nhi").startswith("HTTP/1.1 413 "))
            # What a browser asks first on behalf of another place's page.
            self.assertEqual(get(port, "/stacks", "OPTIONS", Origin="http://evil.example")[0], 405)
            code, _, headers = post(port, key="")
            self.assertEqual((code, headers["WWW-Authenticate"]), (401, "Bearer"))
            self.assertEqual(post(port, key=TOKEN)[0], 401)
            guesses = [post(port, key=page_key()[:-1] + each)[0] for each in "ghijklmn"]
            self.assertEqual(guesses[:4], [401] * 4)
            self.assertIn(429, guesses)
            # It goes on serving, and in time whoever has the key gets stacks again.
            self.assertEqual(get(port, "/healthz")[0], 200)
            eventually(lambda: post(port)[0] == 200)

    def test_a_page_without_workers_says_so(self):
        with reserved_port() as store, Job("--status-listen", "0", "--nnodes", "2", "--rdzv-endpoint", f"127.0.0.1:{store}", *STAY,
                                           DRUN_TOKEN=TOKEN) as job:
            self.assertEqual(eventually(lambda port=job.port(): post(port))[:2], (503, "no worker runs on this node now\n"))


class Tokens(unittest.TestCase):
    """DRUN_TOKEN and --token-file"""

    def file(self, text, mode=0o600):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = pathlib.Path(folder.name, "token")
        path.write_text(text, encoding="ascii")
        path.chmod(mode)
        return str(path)

    def test_a_file_has_it(self):
        with Job("--status-listen", "0", "--token-file", self.file(TOKEN + "\n"), *STAY) as job:
            port = job.port()
            eventually(lambda: post(port)[0] == 200)
            self.assertEqual(post(port, key=page_key("the-token-of-another-job"))[0], 401)

    def test_the_variable_comes_first(self):
        with Job("--status-listen", "0", "--token-file", self.file("another-that-is-not-read"), *STAY, DRUN_TOKEN=TOKEN) as job:
            eventually(lambda port=job.port(): post(port)[0] == 200)

    def test_what_is_no_token_ends_drun(self):
        def refused(*arguments, **variables):
            done = subprocess.run([BIN / "drun", "--status-listen", "0", *arguments, "true"], env={**environment(), **variables},
                                  capture_output=True, text=True, timeout=PATIENCE, check=False)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            return done.stderr
        open_to_all = self.file(TOKEN, 0o644)
        self.assertEqual(refused("--token-file", open_to_all),
                         f"drun: error: --token-file {open_to_all}: others may use it (mode 0644): chmod 600 {open_to_all}\n")
        self.assertIn("/nowhere: No such file or directory", refused("--token-file", "/nowhere"))
        self.assertIn("it has 5 bytes", refused("--token-file", self.file("short\n")))
        self.assertIn("DRUN_TOKEN: it has 0 bytes", refused(DRUN_TOKEN=""))
        self.assertIn("unknown flag '--token'; a token is no argument", refused("--token", TOKEN))
        self.assertNotIn(TOKEN, refused("--token=" + TOKEN))
        said = refused("--dry-run", DRUN_TOKEN="short-secret")
        self.assertIn("DRUN_TOKEN: it has 12 bytes", said)
        self.assertNotIn("short-secret", said)

    def test_other_hosts_get_it_and_their_workers_do_not(self):
        launcher = self.file('#!/bin/sh\nshift\nexec sh -c "$*"\n', 0o755)  # "other hosts" are this machine
        with tempfile.TemporaryDirectory() as folder, reserved_port() as store:
            with Job("-H", "first,second", "--launcher", launcher, "--token-file", "/none/there", "--nproc-per-node", "1", "--rdzv-endpoint", f"127.0.0.1:{store}",
                     "sh", "-c", f"env > {folder}/env$RANK; cat /proc/$PPID/environ > {folder}/agent$RANK", DRUN_TOKEN=TOKEN) as job:
                self.assertEqual(job.process.wait(timeout=PATIENCE), 0, job.said)
            self.assertEqual(sorted(os.listdir(folder)), ["agent0", "agent1", "env0", "env1"])
            for path in pathlib.Path(folder).iterdir():
                self.assertNotIn(b"DRUN_TOKEN", path.read_bytes())
                self.assertNotIn(TOKEN.encode(), path.read_bytes())

    def test_nobody_else_gets_it(self):
        with tempfile.TemporaryDirectory() as folder:
            at = lambda name: os.path.join(folder, name)
            with Job("--status-listen", "0", "--verbose", "--nproc-per-node", "2", "--local-nodes", "2", "--events", at("events"),
                     "--on-event", f"agent_started,workers_running,end:env >> {at('hooks')}; cat /proc/$PPID/environ >> {at('agents')}",
                     "--report", at("report"), "--log-dir", at("logs"), "--redirects", "3", "sh", "-c",
                     f"env; cat /proc/$PPID/environ /proc/$PPID/cmdline; touch {at('rank')}$RANK; exec sleep 1000",
                     DRUN_TOKEN=TOKEN, MARK="is-here") as job:
                port = job.port()
                eventually(lambda: post(port)[0] == 200)
                eventually(lambda: all(os.path.exists(at(f"rank{rank}")) for rank in range(4)))
                pids = subprocess.run(["ps", "-o", "pid=", "--ppid", str(job.process.pid)], capture_output=True, text=True,
                                      check=True).stdout.split()
                for pid in [job.process.pid, *pids]:
                    for name in ("environ", "cmdline"):
                        self.assertNotIn(TOKEN.encode(), pathlib.Path(f"/proc/{pid}/{name}").read_bytes())
                for path in ("/", "/status.json", "/events.json", "/trace.json", "/metrics"):
                    self.assertNotIn(TOKEN, get(port, path)[1])
            self.assertNotIn(TOKEN, job.said)
            marked = 0
            for path in pathlib.Path(folder).rglob("*"):
                if path.is_file():
                    text = path.read_bytes()
                    marked += b"is-here" in text
                    self.assertNotIn(TOKEN.encode(), text, path)
            self.assertGreaterEqual(marked, 5)  # the hooks and the ranks have told their environment
        for look in ("--dry-run", "--explain"):
            shown = subprocess.run([BIN / "drun", look, "--status-listen", "0", "true"], env={**environment(), "DRUN_TOKEN": TOKEN},
                                   capture_output=True, text=True, check=True)
            self.assertNotIn(TOKEN, shown.stdout + shown.stderr)


class Files(unittest.TestCase):
    """--metrics-file"""

    def test_the_job_and_then_its_end(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "job.prom")
            with Job("--metrics-file", str(file), "--local-nodes", "2", *STAY):
                eventually(lambda: 'drun_job_nodes{run_id="none",state="running"} 2\n' in
                           re.sub(r'run_id="[^"]*"', 'run_id="none"', file.read_text(encoding="utf-8")))
            self.assertIn('state="failed"} 1\n', file.read_text(encoding="utf-8"))
            self.assertEqual(os.listdir(folder), ["job.prom"])

    def test_a_folder_that_is_not_there_is_a_warning(self):
        with Job("--metrics-file", "/nowhere/at/all/job.prom", "true") as job:
            self.assertEqual(job.process.wait(timeout=PATIENCE), 0)
        self.assertEqual(job.said.count("--metrics-file: write /nowhere/at/all/job.prom: No such file or directory"), 1)

    def test_the_end_has_what_was_known_last(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "job.prom")
            # Its workers end when the file has told of the job.
            with Job("--metrics-file", str(file), "--rdzv-id", "m", "--local-nodes", "2", "--nproc-per-node", "2", "sh", "-c",
                     f"until grep -q 'nnodes=\"2\"' {file}; do sleep 0.1; done") as job:
                self.assertEqual(job.process.wait(timeout=PATIENCE), 0)
            text = file.read_text(encoding="utf-8")
        for each in ('info{run_id="m",nnodes="2"} 1', 'state{run_id="m",state="succeeded"} 1', 'world_size{run_id="m"} 4',
                     'nodes{run_id="m",state="succeeded"} 2', 'ranks{run_id="m",state="succeeded"} 4'):
            self.assertIn(f"drun_job_{each}\n", text)


class Summaries(unittest.TestCase):
    """--summary"""

    def test_all_ranks_have_told(self):
        with Job("--summary", "--local-nodes", "3", "--nproc-per-node", "2", "sh", "-c",
                 "test $RANK = 3 && exec head -c 300000000 /dev/zero | tail -c 100000000 > /dev/null; exit 0") as job:
            self.assertEqual(job.process.wait(timeout=PATIENCE), 0)
        self.assertRegex(job.said, r"(?m)^drun: usage of 6 ranks +median +lowest +highest$")
        self.assertIn("drun:   rank 3 used ", job.said)
        self.assertIn(" the median's peak memory: ", job.said)

    def test_of_those_that_are_stopped_as_well(self):
        with Job("--summary", "--local-nodes", "2", "--nproc-per-node", "2", "sh", "-c",
                 "test $RANK = 1 && exit 7; exec sleep 1000") as job:
            self.assertEqual(job.process.wait(timeout=PATIENCE), 7)
        self.assertIn("drun: usage of 4 ranks ", job.said)


class Prometheus(unittest.TestCase):
    def setUp(self):
        need("promtool")

    def test_promtool_has_nothing_to_say(self):
        with Job("--status-listen", "0", "--nproc-per-node", "2", *STAY) as job:
            port = job.port()
            until_running(port)
            text = get(port, "/metrics?ranks=1")[1]
        checked = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True,
                                 timeout=PATIENCE, check=False)
        self.assertEqual((checked.returncode, checked.stdout, checked.stderr), (0, "", ""))

    def test_a_real_one_scrapes_the_job(self):
        with tempfile.TemporaryDirectory() as folder, reserved_port() as own, \
                Job("--status-listen", "0", "--local-nodes", "2", "--nproc-per-node", "2", *STAY) as job:
            port = job.port()
            until_running(port)
            config = pathlib.Path(folder, "prometheus.yml")
            config.write_text(f"global: {{scrape_interval: 1s}}\nscrape_configs:\n- job_name: drun\n"
                              f"  static_configs: [{{targets: ['127.0.0.1:{port}']}}]\n", encoding="utf-8")
            with open(os.path.join(folder, "log"), "wb") as log:
                prometheus = subprocess.Popen(["prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder}/data",
                                               f"--web.listen-address=127.0.0.1:{own}"], stdout=log, stderr=log)
            try:
                def value(query):
                    code, answer, _ = get(own, "/api/v1/query?query=" + query)
                    result = code == 200 and json.loads(answer)["data"]["result"]  # it says 503 while it starts
                    return result and result[0]["value"][1]
                eventually(lambda: value("drun_job_ranks%7Bstate=%22running%22%7D") == "4")
                self.assertEqual(value("drun_job_restarts_total"), "0")
                self.assertEqual(value("up"), "1")
            finally:
                prometheus.terminate()
                prometheus.wait(timeout=PATIENCE)


def events(port):
    return json.loads(get(port, "/events.json")[1])["events"]


class Events(unittest.TestCase):
    def test_the_last_ones_and_their_picture(self):
        with Job("--status-listen", "0", "--rdzv-id", "ev", "--nproc-per-node", "2", "--max-restarts", "1", "sh", "-c",
                 "test $TORCHELASTIC_RESTART_COUNT$RANK = 01 && exit 7; exec sleep 1000") as job:
            port = job.port()
            told = eventually(
                lambda: (told := events(port)) and told[-1]["event"] == "workers_running" and told[-1]["round"] == 2 and told)
            kinds = [event["event"] for event in told]
            self.assertEqual([kind for kind in kinds if kind in ("round_begun", "worker_exited", "failure", "restart")],
                             ["round_begun", "worker_exited", "failure", "restart", "round_begun"])
            self.assertNotIn("worker_started", kinds)
            trace = json.loads(get(port, "/trace.json")[1])
            names = [each["name"] for each in trace["traceEvents"]]
            self.assertEqual(names.count("failed"), 1)
            self.assertIn("round 2", names)
            rounds = status(port)["rounds"]
            self.assertEqual([(each["number"], each["restart"]) for each in rounds], [(1, 1), (2, 0)])
            self.assertIn("rank 1 on ", rounds[0]["reason"])

    def test_they_need_no_store(self):
        with reserved_port() as store, Job("--status-listen", "0", "--nnodes", "2", "--node-rank", "1", "--rdzv-endpoint",
                                           f"127.0.0.2:{store}", "--rdzv-id", "ev", "true") as job:
            told = eventually(lambda port=job.port(): events(port))
            self.assertEqual([event["event"] for event in told], ["agent_started"])


class Lost(unittest.TestCase):
    # In a machine's name of its own; what is started so keeps its process.
    UNSHARE = ["unshare", "--uts"] + ([] if os.geteuid() == 0 else ["--user", "--map-root-user"])

    def setUp(self):
        if subprocess.run([*self.UNSHARE, "true"], capture_output=True, check=False).returncode != 0:
            self.skipTest("no namespace for a host's name can be made here")

    def at_host(self, name, *arguments):
        return Job(*arguments, before=[*self.UNSHARE, "sh", "-c", 'hostname "$0"; exec "$@"', name])

    def test_who_is_gone_is_named(self):
        with reserved_port() as store:
            place = ["--nnodes", "1:2", "--rdzv-endpoint", f"127.0.0.1:{store}", "--rdzv-id", "lost", "--rdzv-conf",
                     "last_call_timeout=60"]
            with self.at_host("first", "--status-listen", "0", *place, *STAY) as first:
                port = first.port()
                with self.at_host("second", *place, *STAY) as second:
                    eventually(lambda: status(port)["round"]["nodes"] == 2)
                    self.assertEqual(status(port)["absent"], [])
                    second.process.kill()
                    found = eventually(lambda: (job := status(port))["state"] == "running" and job["round"]["nodes"] == 1 and job)
        self.assertEqual(found["absent"], [{"host": "second", "state": "lost", "note": "lost in 1 round, and not back"}])


class MadeUpJob(http.server.BaseHTTPRequestHandler):
    """The page with a job that no test machine could run: 500 nodes, 4,000 ranks."""

    def do_GET(self):  # the name is the library's
        nodes = [{"host": f"node{n}", "address": "", "role": "", "state": "failed" if n == 13 else "running",
                  "note": "rank 104: <b>exit code 7</b>" if n == 13 else "", "hosts_store": n == 0, "leads": n == 0,
                  "group_rank": n, "ranks": [8 * n, 8 * n + 7]} for n in range(500)]
        nodes[13]["failed_ranks"] = [[104, 104], [110, 111]]
        job = {"id": "big", "state": "running", "nnodes": "500", "round": {"number": 1, "phase": "running", "nodes": 500,
               "world_size": 4000, "waiting": "", "reason": "", "since_ms": 1795876206000, "hung": True}, "restarts": 1,
               "steps": [41, 62], "behind": {"host": "node2", "rank": 17, "step": 41, "heartbeat_ms": 1795876300000},
               "collective": "rank 17 is not in call 5", "max_restarts": 3, "losses": 0, "nodes": nodes,
               "absent": [{"host": "", "state": "missing", "note": "its agent is gone", "group_rank": 500, "ranks": [4000, 4007]},
                          {"host": "node501", "state": "lost", "note": "lost in 1 round, and not back"}],
               "rounds": [{"number": 1, "nodes": 500, "world_size": 4000, "began_ms": 1795876200000, "stopping_ms": 1795876205000,
                           "ended_ms": 1795876206000, "cause": "failure", "reason": "rank 3 on node0: exit code 9", "restart": 1}]}
        told = {"events": [{"event": "node_gone", "time": "2026-11-28T14:30:05.5Z", "hostname": "node0", "peer_host": "node501",
                            "reason": "its <i>session</i> ended"},
                           {"event": "round_begun", "time": "2026-11-28T14:30:06Z", "hostname": "node0"}]}
        page = self.path == "/"
        body = PAGE.read_bytes() if page else json.dumps(told if self.path == "/events.json" else job).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8" if page else "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class NextJob(MadeUpJob):
    """One job after the other at the same address: `over` says which have ended."""
    over: dict = {}
    name = "first"

    def do_GET(self):  # the name is the library's
        if self.path not in ("/status.json", "/end.json"):
            return super().do_GET()
        over = self.over.get(self.name)
        if self.path == "/end.json":
            while not (over := self.over.get(self.name)):
                time.sleep(0.02)
            told = {"ended": True, "state": "failed", "exit_code": over, "text": self.name}
        else:
            told = {"id": self.name, "state": "failed" if over else "running", "nnodes": "1", "restarts": 0, "max_restarts": 0, "losses": 0,
                    "round": {"number": 1, "phase": "running", "nodes": 1, "world_size": 1, "waiting": "", "reason": "", "since_ms": 0,
                              "hung": False}, "nodes": [], "absent": [], "rounds": []}
            if over:
                told["outcome"] = {"exit_code": over, "text": self.name}
        body = json.dumps(told).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Browser(unittest.TestCase):
    def setUp(self):
        need("chromium")

    def test_the_page_of_a_job(self):
        with Job("--status-listen", "0", "--rdzv-id", "seen", "--local-nodes", "2", "--nproc-per-node", "2", *STAY) as job:
            port = job.port()
            until_running(port)
            dom = chromium("--dump-dom", f"http://127.0.0.1:{port}/")
        self.assertIn('<h1 id="job">job seen</h1>', dom)
        self.assertRegex(dom, r'<span id="state" class="badge running" role="status">running</span>')
        self.assertIn('aria-label="4 running"', dom)
        self.assertEqual(len(re.findall(r'<i class="running" title="rank \d on [^"]+: running">', dom)), 4)

    def test_the_end_of_a_job(self):
        for code, named in ((7, "failed, exit code 7"), (0, "succeeded, exit code 0")):
            with self.subTest(named), tempfile.TemporaryDirectory() as folder:
                go = os.path.join(folder, "go")
                with Job("--status-listen", "0", "--rdzv-id", "a:b", "sh", "-c", f"while [ ! -e {go} ]; do sleep 0.05; done; exit {code}") as job:
                    port = job.port()
                    with Tab(f"http://127.0.0.1:{port}/") as tab:
                        text = lambda element, tab=tab: tab.value(f"document.getElementById('{element}').textContent")
                        eventually(lambda: text("state") == "running")
                        eventually(lambda: tab.value("waitsForEnd"))
                        pathlib.Path(go).touch()
                        eventually(lambda: text("state") == named)
                        told = eventually(lambda: text("lost"))
                        job.process.wait(timeout=PATIENCE)
                        colour = tab.value("document.getElementById('state').className")
                        title = tab.value("document.title")
                        # What asks on finds nobody, and changes nothing of that.
                        tab.value("update().then(() => { document.body.dataset.asked = 'yes'; })")
                        eventually(lambda: tab.value("document.body.dataset.asked") == "yes")
                        self.assertEqual(text("state"), named)
                self.assertTrue(told.startswith(f"The job has ended: {named}"), told)
                self.assertIn("What is below was seen at ", told)
                self.assertEqual(colour, "badge " + named.split(",")[0])
                self.assertEqual(title, f"a:b: {named}")

    def test_an_agent_that_is_killed_leaves_no_job_that_runs(self):
        with Job("--status-listen", "0", "--rdzv-id", "killed", *STAY) as job, Tab(f"http://127.0.0.1:{job.port()}/") as tab:
            text = lambda element: tab.value(f"document.getElementById('{element}').textContent")
            eventually(lambda: text("state") == "running")
            job.process.kill()
            eventually(lambda: text("state") == "last seen: running")
            self.assertEqual(tab.value("document.getElementById('state').className"), "badge")
            self.assertEqual(tab.value("document.title"), "killed: last seen: running")
            self.assertRegex(text("lost"), r"^The agent does not answer since .*: what is below was seen then\. It ends with its job\.$")

    def test_the_next_job_at_the_same_address(self):
        with self.made_up(NextJob) as address, Tab(address) as tab:
            text = lambda element: tab.value(f"document.getElementById('{element}').textContent")
            hidden = lambda: tab.value("document.getElementById('lost').hidden")
            eventually(lambda: text("state") == "running" and tab.value("waitsForEnd"))
            for code, name in ((7, "first"), (8, "second")):
                NextJob.over[name] = code
                eventually(lambda: text("lost").startswith(f"The job has ended: failed, exit code {code}: {name}.") and not hidden())
                tab.value("update().then(() => { document.body.dataset.asked = 'yes'; })")
                eventually(lambda: tab.value("document.body.dataset.asked") == "yes")
                self.assertFalse(hidden(), "its agent still answers")
                NextJob.name = "second" if name == "first" else "third"
                eventually(lambda: text("state") == "running" and hidden())
                self.assertEqual(text("job"), f"job {NextJob.name}")

    def test_the_button_for_stacks(self):
        with Job("--status-listen", "0", "--rdzv-id", "<b>pressed</b>", "--local-nodes", "2", "--nproc-per-node", "2", *STAY,
                 DRUN_TOKEN=TOKEN) as job:
            port = job.port()
            until_running(port)
            eventually(lambda: "ranks 0-3" in post(port)[1])
            with Tab(f"http://127.0.0.1:{port}/") as tab:
                eventually(lambda: tab.value("document.getElementById('stacks').hidden") is False)
                told = lambda: tab.value("document.getElementById('told').textContent")
                # The page grows while it fills, and what is pressed moves: a press may miss.
                press_until = lambda what: eventually(lambda: what() or tab.press("take"))
                press_until(lambda: "Enter the page's key" in told())
                tab.press("token")
                tab.write("this-is-not-the-key")
                press_until(lambda: told() == "No stacks: this is not the page's key")
                self.assertTrue(tab.value("document.getElementById('found').hidden"))
                tab.value("document.getElementById('token').value = ''")
                tab.press("token")
                tab.write(page_key())
                press_until(lambda: told().startswith("Taken at "))
                text = tab.value("document.getElementById('found').textContent")
                self.assertFalse(tab.value("document.getElementById('found').hidden"))
                self.assertRegex(text, r"\Ajob <b>pressed</b>: stacks of ranks 0-3 on ")
                self.assertEqual(tab.value("document.getElementById('found').children.length"), 0)
                self.assertEqual(tab.value("location.href"), f"http://127.0.0.1:{port}/")
                kept = tab.value("JSON.stringify([document.cookie, {...localStorage}, {...sessionStorage}])")
                self.assertEqual(kept, '["",{},{}]')
                self.assertNotIn(page_key(), tab.value("document.documentElement.outerHTML"))

    def test_without_a_token_there_is_no_button(self):
        with Job("--status-listen", "0", *STAY) as job, Tab(f"http://127.0.0.1:{job.port()}/") as tab:
            eventually(lambda: tab.value("document.getElementById('state').textContent") == "running")
            self.assertEqual(tab.value("document.getElementById('take').offsetParent"), None)
            self.assertTrue(tab.value("document.getElementById('stacks').hidden"))

    @contextlib.contextmanager
    def made_up(self, job=MadeUpJob):
        """Its address."""
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), job)
        server.daemon_threads = True  # who still waits for an end is not waited for
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()
            server.server_close()

    def test_no_word_breaks_where_the_page_is_narrow(self):
        with self.made_up() as address, Tab(address) as tab:
            eventually(lambda: tab.value("document.querySelectorAll('#table td').length") > 0)
            broken = tab.value("""(() => {
              document.body.style.width = "400px";
              return [...document.querySelectorAll("th, #table td")].filter(cell => {
                const range = document.createRange();
                range.selectNodeContents(cell);
                return /^[^ -]+$/.test(cell.textContent) && range.getClientRects().length > 1;
              }).map(cell => cell.textContent);
            })()""")
        self.assertEqual(broken, [])

    def test_four_thousand_ranks(self):
        with self.made_up() as address, tempfile.TemporaryDirectory() as folder:
            picture = os.path.join(folder, "page.png")
            dom = chromium("--dump-dom", address)
            chromium(f"--screenshot={picture}", "--window-size=1200,1000", address)
            self.assertEqual(pathlib.Path(picture).read_bytes()[:4], b"\x89PNG")
        self.assertEqual(dom.count('<i class="running" title="rank '), 3997)  # also beside a rank that has failed
        self.assertEqual(re.findall(r'<i class="failed" title="rank (\d+) ', dom), ["104", "110", "111"])
        self.assertEqual(dom.count('<i class="missing" title="rank '), 8)
        self.assertIn('aria-label="3 failed, 8 missing, 3997 running"', dom)
        self.assertIn('class="badge failed" role="status">hangs</span>', dom)
        lines = re.findall("<li>(.*?)</li>", re.search(r'<ul id="lines" class="lines">(.*?)</ul>', dom)[1])
        self.assertEqual(lines[0], "Hangs: no rank makes progress any more")
        self.assertRegex(lines[-2], r"^Heartbeats: steps 41 to 62; rank 17 on node2 is furthest behind: step 41, last heartbeat ")
        self.assertEqual(lines[-1], "NCCL: rank 17 is not in call 5")
        self.assertRegex(dom, r"<dt>Since</dt><dd>[^<]*2026[^<]*</dd>")
        self.assertRegex(dom, r'<tbody id="happened"><tr><td>[^<]*2026[^<]*</td>')
        rows = re.search(r'<tbody id="happened">(.*?)</tbody>', dom)[1]
        self.assertEqual([re.sub(r"<[^>]*>", "|", row)[1:].split("||")[1:] for row in rows.split("</tr>")[:-1]],
                         [["restart 1", "of 3 allowed", "the job|"],
                          ["node gone", "node501: its &lt;i&gt;session&lt;/i&gt; ended", "node0|"],
                          ["round 1 stops", "rank 3 on node0: exit code 9", "the job|"],
                          ["round 1 begins", "500 nodes, 4000 ranks", "the job|"]])
        self.assertIn("rank 104: &lt;b&gt;exit code 7&lt;/b&gt;", dom)
        self.assertIn("and 302 nodes more", dom)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
