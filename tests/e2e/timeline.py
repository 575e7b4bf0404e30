"""drunctl timeline: of real jobs and of a made-up one of 4,000 ranks, as a trace and in a headless Chromium.

usage: timeline.py BIN_FOLDER
"""
import datetime
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import unittest

from browser import PATIENCE, Tab, chromium, environment, need

BIN = pathlib.Path(sys.argv[1])
# Rank 3 fails in the first round, once all run, and all succeed in the second.
FAILS_ONCE = (f"'{BIN}/drunctl' --timeout {PATIENCE} barrier started.$TORCHELASTIC_RESTART_COUNT 4 || exit 9; "
              "test $RANK = 3 && exit $((7 - 7 * TORCHELASTIC_RESTART_COUNT)); "
              "test $TORCHELASTIC_RESTART_COUNT = 1 || exec sleep 1000")


def drunctl(*arguments):
    return subprocess.run([BIN / "drunctl", *arguments], env=environment(), stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=PATIENCE, check=False)


def job_of_two_nodes(folder):
    """Its event files, one of each node."""
    store = subprocess.Popen([BIN / "drun-store", "--bind", "127.0.0.1", "--port", "0"], env=environment(),
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        endpoint = store.stdout.readline().strip()
        files = [folder / "a.jsonl", folder / "b.jsonl"]
        agents = [subprocess.Popen([BIN / "drun", "--nnodes", "2", "--rdzv-endpoint", endpoint, "--rdzv-id", "train",
                                    "--nproc-per-node", "2", "--max-restarts", "1", "--events", file,
                                    "sh", "-c", FAILS_ONCE], env={**environment(), "DRUN_STORE": endpoint},
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                  for file in files]
        codes = [agent.wait(timeout=PATIENCE) for agent in agents]
    finally:
        store.terminate()
        store.wait(timeout=PATIENCE)
        store.stdout.close()
    if codes != [0, 0]:
        raise AssertionError(f"the job ended with {codes}")
    return files


def on_another_host(file, host, ahead):
    """The file as a node of `host` would have written it, whose clock is `ahead` seconds ahead."""
    def shifted(match):
        time = datetime.datetime.fromisoformat(match[1] + "+00:00") + datetime.timedelta(seconds=ahead)
        return f'"time":"{time:%Y-%m-%dT%H:%M:%S}{match[2]}'
    text = file.read_text(encoding="utf-8")
    text = re.sub(r'"hostname":"[^"]*"', f'"hostname":"{host}"', text)
    file.write_text(re.sub(r'"time":"([^".]*)(\.\d*Z)', shifted, text), encoding="utf-8")


def event(name, ms, **fields):
    time = datetime.datetime(2026, 11, 28, 14, 30, tzinfo=datetime.timezone.utc) + datetime.timedelta(milliseconds=ms)
    return json.dumps({"event": name, "time": f"{time:%Y-%m-%dT%H:%M:%S.%f}000Z", "monotonic_ns": (10_000_000 + ms) * 1_000_000,
                       "run_id": "big", **fields}) + "\n"


def big_job(folder):
    """500 nodes of 8 ranks; rank 104, on node13, fails with a text that would like to be a script."""
    lines = []
    for n in range(500):
        place = {"node": f"t{n}", "hostname": f"node{n}", "agent_pid": 100 + n, "round": 1, "group_rank": n}
        lines.append(event("store_found", n, **{**place, "round": 0}))
        lines.append(event("round_begun", 1000 + n % 9, group_world_size=500, first_rank=8 * n, local_world_size=8,
                           world_size=4000, **place))
        for rank in range(8 * n, 8 * n + 8):
            lines.append(event("worker_started", 1100, global_rank=rank, local_rank=rank % 8, pid=rank + 1, **place))
        lines.append(event("workers_running", 1120, **place))
        if n == 13:
            lines.append(event("worker_exited", 60_000, global_rank=104, local_rank=0, pid=105, state="FAILED",
                               exit_code=7, raw_error="</script><b id=\"evil\">exit code 7", **place))
        lines.append(event("round_stopping", 60_010 + n % 5, reason="rank 104", **place))
        lines.append(event("round_ended", 61_000, **place))
    file = folder / "big.jsonl"
    file.write_text("".join(lines), encoding="utf-8")
    return file


def long_job(folder):
    """100 nodes of one rank, for 3 days: rank 90 fails on node90, then on node95, which has taken its place."""
    lines = []
    for n in range(100):
        agent = {"node": f"t{n}", "hostname": f"node{n}", "agent_pid": 100 + n}
        lines.append(event("store_found", n, round=0, group_rank=-1, **agent))
        for number, (begin, end, failed) in enumerate([(1000, 60_000, 90), (70_000, 3 * 86_400_000, 95)], 1):
            rank = n if number == 1 else {90: 95, 95: 90}.get(n, n)
            place = {**agent, "round": number, "group_rank": rank, "agent_restarts": number - 1}
            lines.append(event("round_begun", begin, group_world_size=100, first_rank=rank, local_world_size=1, world_size=100, **place))
            lines.append(event("worker_started", begin + 1, global_rank=rank, local_rank=0, pid=1000 * number + n, **place))
            lines.append(event("workers_running", begin + 2, **place))
            if n == failed:
                lines.append(event("worker_exited", end, global_rank=rank, local_rank=0, pid=1000 * number + n, state="FAILED",
                                   exit_code=7, raw_error=f"exit code 7 in round {number}", **place))
            if n == 0:
                lines.append(event("failure", end + 3, global_rank=90, local_rank=0, pid=1000 * number + failed, exit_code=7,
                                   raw_error=f"exit code 7 in round {number}", peer=f"t{failed}", peer_host=f"node{failed}", **place))
            lines.append(event("round_stopping", end + 5, reason="rank 90", **place))
            lines.append(event("round_ended", end + 10, **place))
        lines.append(event("outcome", end + 20, state="FAILED", exit_code=7, raw_error="rank 90 on node95: exit code 7", **place))
    file = folder / "long.jsonl"
    file.write_text("".join(lines), encoding="utf-8")
    return file


class Timeline(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def make(self, *arguments, says=""):
        done = drunctl("timeline", *arguments)
        self.assertEqual((done.returncode, done.stderr), (0, says))
        return done.stdout


class Traces(Timeline):
    def check(self, trace):
        """Its form, and what happened in the job of two nodes."""
        events = trace["traceEvents"]
        for each in events:
            self.assertIsInstance(each["pid"], int)
            self.assertIsInstance(each["tid"], int)
            self.assertIn(each["ph"], "MXisf")
            if each["ph"] != "M":
                self.assertGreaterEqual(each["ts"], 0)
            if each["ph"] == "X":
                self.assertGreaterEqual(each["dur"], 0)
        processes = {each["pid"]: each["args"]["name"] for each in events if each["name"] == "process_name"}
        self.assertEqual(len(processes), 3)
        threads = {(each["pid"], each["args"]["name"]) for each in events if each["name"] == "thread_name"}
        self.assertEqual({name for _, name in threads}, {"rank 0", "rank 1", "rank 2", "rank 3", "node", "rounds"})
        slices = [each for each in events if each["ph"] == "X"]
        self.assertEqual([each["name"] for each in slices if each["name"].startswith(("round", "restart"))],
                         ["round 1", "restart 1", "round 2"])
        for rank in range(4):
            states = [each["name"] for each in slices if each["tid"] == rank and processes[each["pid"]] != "job"]
            self.assertGreaterEqual(states.count("running"), 2 if rank == 3 else 1, states)
            self.assertEqual("failed" in states, rank == 3, states)
        cause = [each for each in events if each["name"] == "first cause"]
        self.assertEqual([(each["tid"], each["args"]["text"]) for each in cause], [(3, "exit code 7")])
        flows = {phase: [each["id"] for each in events if each["ph"] == phase] for phase in "sf"}
        self.assertEqual(flows["s"], flows["f"])
        self.assertEqual(len(flows["s"]), 3)  # the other node stops; both start again
        for start, end in zip([each for each in events if each["ph"] == "s"], [each for each in events if each["ph"] == "f"]):
            self.assertLessEqual(start["ts"], end["ts"])

    def test_of_two_nodes_that_restarted_once(self):
        files = job_of_two_nodes(self.folder)
        trace = self.make(*files)
        self.check(json.loads(trace))
        self.assertEqual(self.make(*files, "-o", "-"), trace)
        self.assertEqual(self.make(*files, "-o", self.folder / "trace.json"), "")
        self.assertEqual((self.folder / "trace.json").read_text(encoding="utf-8"), trace)

    def test_a_clock_that_is_wrong_is_set(self):
        files = job_of_two_nodes(self.folder)
        on_another_host(files[0], "north", 0)
        on_another_host(files[1], "south", 3600)
        done = drunctl("timeline", *files)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"^drunctl: the clock of (north was (59 min \d+|60 min \d+) s behind|"
                                      r"south was (59 min \d+|60 min \d+) s ahead): its times are corrected\n$")
        trace = json.loads(done.stdout)
        self.check(trace)
        self.assertLess(max(each.get("ts", 0) for each in trace["traceEvents"]), PATIENCE * 1e6)
        self.assertEqual(len(trace["otherData"]["notes"]), 1)

    def test_what_is_no_event_is_left_out_and_told(self):
        file = self.folder / "events.jsonl"
        file.write_text("made by hand\n" + event("moon_rose", 5, node="n", hostname="h", agent_pid=1) + '{"event":"warn',
                        encoding="utf-8")
        trace = json.loads(self.make(file, file, says=(
            f"drunctl: {file}: 1 line without an event left out\ndrunctl: {file}: its last line is cut off\n"
            f"drunctl: {file}: 1 line without an event left out\ndrunctl: {file}: its last line is cut off\n"
            f"drunctl: {file}: 1 event seen before left out\n")))
        self.assertIn("moon_rose", [each["name"] for each in trace["traceEvents"]])

    def test_what_cannot_be_drawn_is_one_line(self):
        empty, other = self.folder / "empty", self.folder / "other"
        empty.touch()
        other.write_text("hello\n", encoding="utf-8")
        good = big_job(self.folder)
        for arguments, code, line in (
                ([self.folder / "gone"], 2, f"drunctl: error: timeline '{self.folder}/gone': No such file or directory\n"),
                ([self.folder], 2, f"drunctl: error: timeline '{self.folder}': Is a directory\n"),
                ([empty], 1, f"drunctl: error: {empty}: it is empty: name a file that drun --events wrote\n"),
                ([good, other], 1, f"drunctl: error: {other}: it holds no events: name a file that drun --events wrote\n"),
                ([], 2, "drunctl: error: expected: drunctl timeline EVENTS...\n"),
                ([good, "-o", self.folder / "no" / "trace"], 125,
                 f"drunctl: error: write {self.folder}/no/trace: No such file or directory\n")):
            done = drunctl("timeline", *arguments)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (code, "", line))
        self.assertEqual(sorted(os.listdir(self.folder)), ["big.jsonl", "empty", "other"])


class Pages(Timeline):
    def setUp(self):
        super().setUp()
        need("chromium")

    def dom(self, *files, hash_=""):
        page = self.folder / "page.html"
        self.make(*files, "--html", "-o", page)
        return chromium("--dump-dom", page.as_uri() + hash_)

    def test_of_two_nodes_that_restarted_once(self):
        files = job_of_two_nodes(self.folder)
        dom = self.dom(*files, hash_="#row=3&at=0")
        self.assertIn('<h1 id="job">job train</h1>', dom)
        self.assertRegex(dom, r'<p id="facts">2 nodes, 4 ranks, 2 rounds, 1 restart, ')
        self.assertRegex(dom, r'<p id="cause" role="note">First cause of round 1\'s stop: rank 3 on [^<]*: exit code 7, after ')
        self.assertRegex(dom, r'<canvas id="chart"[^>]* data-rows="4"')
        self.assertGreater(int(re.search(r'data-spans="(\d+)"', dom)[1]), 4 * 5)
        self.assertRegex(dom, r'<tbody id="causes"><tr><td>1</td><td>[^<]*</td><td>3</td><td>[^<]*</td><td>exit code 7</td></tr></tbody>')
        self.assertRegex(dom, r'<p id="detail" role="status">rank 3 on [^<]+; ')
        self.assertRegex(dom, r'<ul id="ends" class="notes"><li>succeeded, after [^<]*</li></ul>')
        for state in ("waiting", "starting", "running", "stopping", "succeeded", "failed"):
            self.assertIn(f"</i>{state}</li>", dom)

    def test_zoom_and_details_at_a_place(self):
        dom = self.dom(big_job(self.folder), hash_="#from=59000000&to=61500000&row=13&at=60000000")
        self.assertIn('data-from="59000000" data-to="61500000"', dom)
        self.assertRegex(dom, r'<p id="detail" role="status">ranks 104-111 on node13, round 1; running for [^<]*; '
                              r'worker exited at 1 min 0 s, rank 104: &lt;/script&gt;&lt;b id="evil"&gt;exit code 7; '
                              r'first cause of the stop of round 1; 2026-11-28 14:31:00.000 UTC</p>')

    def test_a_job_of_days_opens_on_what_ended_it(self):
        page = self.folder / "page.html"
        self.make(long_job(self.folder), "--html", "-o", page)
        with Tab(page.as_uri()) as tab:
            deadline = time.monotonic() + PATIENCE
            while not tab.value("document.readyState === 'complete' && !!document.getElementById('axis')?.dataset.ticks"):
                self.assertLess(time.monotonic(), deadline, "the page does not come")
            self.assertRegex(tab.value("at('cause').textContent"),
                             r"^What ended the job, first cause of round 2's stop: rank 90 on node95: exit code 7 in round 2, after 72 h 0 min\n"
                             r"First cause of round 1's stop: rank 90 on node90: exit code 7 in round 1, after 1 min 0 s$")
            self.assertEqual(tab.value("nodesOf(data.rows[90])"), "node90, node95")
            top, high = tab.value("[90 * rowHeight() - view.scrollTop, view.clientHeight]")
            self.assertGreaterEqual(top, 0)
            self.assertLess(top, high)
            stops = [tab.value("nextFailure(), cursor.row + ' at ' + long(cursor.at)") for _ in range(3)]
            self.assertEqual(stops, ["90 at 1 min 0 s", "90 at 72 h 0 min", "90 at 1 min 0 s"])
            tab.ask("Emulation.setDeviceMetricsOverride", width=1200, height=900, deviceScaleFactor=1, mobile=False)
            for begin, end, some in ((0, 6e7, "0 s, 10 s, 20 s"), (0, 12 * 6e7, "0 min, 2 min, 4 min"), (0, 72e8, "45 min, 1 h, 1 h 15 min"),
                                     (0, 3 * 864e8, "12 h, 1 d, 1 d 12 h, 2 d"), (0, 4e5, "0 ms, "), (6e7, 6.04e7, "60 s, 60.05 s, ")):
                ticks = tab.value(f"look({begin}, {end}), draw(), axis.dataset.ticks")
                self.assertIn(some, ticks)

    def test_four_thousand_ranks_have_a_row_for_each_node(self):
        file = big_job(self.folder)
        dom = self.dom(file)
        self.assertLess((self.folder / "page.html").stat().st_size, 1_000_000)
        self.assertRegex(dom, r'<p id="facts">500 nodes, 4000 ranks, 1 round, 0 restarts, [^<]*. So many ranks have a row for each node.</p>')
        self.assertRegex(dom, r'<canvas id="chart"[^>]* data-rows="500"')
        # The names of the longest have room.
        self.assertGreater(int(re.search(r'data-labels="(\d+)"', dom)[1]), 150)
        self.assertIn("rank 104 on node13: &lt;/script&gt;&lt;b id=\"evil\"&gt;exit code 7, after 1 min 0 s", dom)
        self.assertNotIn('<b id="evil">', dom)
        picture = self.folder / "page.png"
        chromium(f"--screenshot={picture}", "--window-size=1200,900", (self.folder / "page.html").as_uri())
        self.assertEqual(picture.read_bytes()[:4], b"\x89PNG")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
