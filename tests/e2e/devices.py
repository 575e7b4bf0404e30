"""Devices, CPUs and threads as real workers find them, with eight GPUs that a stand-in for NVML lists.

usage: devices.py BIN_FOLDER FAKE_NVML_FOLDER
"""
import os
import pathlib
import re
import subprocess
import sys
import unittest

BIN, FAKE_NVML = pathlib.Path(sys.argv[1]), sys.argv[2]
EIGHT_GPUS = " ".join(f"GPU-{n}@0000:0{n}:00" for n in range(8))
SHOW = ["sh", "-c", 'echo "$RANK $LOCAL_RANK of $LOCAL_WORLD_SIZE: ${CUDA_VISIBLE_DEVICES-unset}"']
CPUS = ["sh", "-c", 'echo "$RANK $(grep Cpus_allowed_list /proc/self/status | cut -f2) ${OMP_NUM_THREADS-unset}"']


def drun(*arguments, before=(), **variables):
    environment = {"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": FAKE_NVML, "FAKE_NVML": EIGHT_GPUS, **variables}
    done = subprocess.run([*before, str(BIN / "drun"), *arguments], env=environment, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=60, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{arguments}: exit code {done.returncode}: {done.stderr}")
    return sorted(done.stdout.splitlines()), done.stderr.splitlines()


class Gpus(unittest.TestCase):
    def test_a_worker_for_each(self):
        self.assertEqual(len(drun("--nproc-per-node", "gpu", *SHOW)[0]), 8)
        self.assertEqual(len(drun("--nproc-per-node", "auto", *SHOW)[0]), 8)
        self.assertEqual(drun("--nproc-per-node", "gpu", *SHOW, CUDA_VISIBLE_DEVICES="6,2")[0],
                         ["0 0 of 2: 6,2", "1 1 of 2: 6,2"])

    def test_chosen_ones(self):
        expected = [f"{n} {n} of 3: 1,3,5" for n in range(3)]
        self.assertEqual(drun("--gpu-ids", "1,3,5", *SHOW)[0], expected)
        self.assertEqual(drun("--include", "localhost:1,3,5", *SHOW)[0], expected)
        self.assertEqual(drun("--exclude", "localhost:0,2,4,6,7", *SHOW)[0], expected)
        self.assertEqual(drun("--gpu-ids", "1", *SHOW, CUDA_VISIBLE_DEVICES="4,5,6,7")[0], ["0 0 of 1: 5"])

    def test_one_for_each_worker(self):
        self.assertEqual(drun("--nproc-per-node", "2", "--virtual-local-rank", *SHOW)[0], ["0 0 of 2: 0", "1 0 of 2: 1"])
        self.assertEqual(drun("--gpu-ids", "7,2", "--virtual-local-rank", *SHOW)[0], ["0 0 of 2: 7", "1 0 of 2: 2"])

    def test_the_map_is_in_the_log_and_in_a_dry_run(self):
        for flags in (["--report-bindings"], ["--verbose"]):
            said = "\n".join(drun("--gpu-ids", "1,3", *flags, *SHOW)[1])
            self.assertRegex(said, r"rank 1 \(local rank 1\): GPU 3 \(0000:03:00\.0\) of 1,3")
        shown = "\n".join(drun("--gpu-ids", "1,3", "--dry-run", *SHOW)[0])
        self.assertRegex(shown, r"on GPU 3 \(0000:03:00\.0\) of 1,3")
        self.assertRegex(shown, r"CUDA_VISIBLE_DEVICES=1,3")

    def test_what_is_not_there_is_an_error(self):
        with self.assertRaisesRegex(AssertionError, r"exit code 2: drun: error: --gpu-ids '9'.*\n'?$"):
            drun("--gpu-ids", "9", *SHOW)


class Cpus(unittest.TestCase):
    first = str(min(os.sched_getaffinity(0)))

    def test_nothing_is_bound_unless_asked_for(self):
        own = subprocess.run(CPUS, env={"RANK": "0", "PATH": os.environ["PATH"]}, capture_output=True, text=True, check=True)
        self.assertEqual(drun(*CPUS)[0], own.stdout.splitlines())

    def test_every_kind_stays_within_what_drun_was_given(self):
        for kind in ("node", "socket", "exclusive", "core-complex"):
            for gpus in (EIGHT_GPUS.split()[0], ""):
                seen, said = drun("--numa-binding", kind, "--report-bindings", *CPUS, before=["taskset", "-c", self.first],
                                  FAKE_NVML=gpus)
                self.assertEqual(seen, [f"0 {self.first} unset"])
                self.assertTrue(any(re.search(rf"rank 0.*CPU {self.first}\b", line) for line in said), said)

    def test_the_workers_are_where_the_report_says(self):
        if len(os.sched_getaffinity(0)) < 2:
            self.skipTest("one CPU cannot be divided")
        seen, said = drun("--numa-binding", "exclusive", "--nproc-per-node", "2", "--report-bindings", *CPUS, FAKE_NVML="")
        for line in seen:
            rank, cpus, _ = line.split()
            self.assertTrue(any(re.search(rf"rank {rank} .*CPUs? {cpus}\b", each) for each in said), (line, said))
        self.assertEqual(len({line.split()[1] for line in seen}), 2)

    def test_threads(self):
        self.assertEqual(drun("--nproc-per-node", "2", *CPUS)[0][0].split()[2], "1")
        self.assertEqual(drun("--nproc-per-node", "2", *CPUS, OMP_NUM_THREADS="5")[0][0].split()[2], "5")
        self.assertEqual(drun("--nproc-per-node", "2", "--omp-threads", "3", *CPUS)[0][0].split()[2], "3")
        self.assertEqual(drun("--omp-threads", "auto", *CPUS, before=["taskset", "-c", self.first])[0], [f"0 {self.first} 1"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
