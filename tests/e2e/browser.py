"""A headless Chromium for the tests of pages, and what else they share."""
import os
import shutil
import subprocess
import tempfile

PATIENCE = 120  # seconds for what must come


def environment():
    return {name: value for name, value in os.environ.items()
            if not name.startswith(("PET_", "DRUN_", "SLURM_", "TORCHELASTIC_"))}


def need(program):
    if not shutil.which(program):
        raise AssertionError(f"{program} is missing: scripts/install-packages test installs it")


def chromium(*arguments):
    """What it prints: with --dump-dom the page as its script has made it."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                               f"--user-data-dir={folder}", "--virtual-time-budget=3000", *arguments],
                              capture_output=True, text=True, timeout=5 * PATIENCE, check=False,
                              env={**environment(), "HOME": folder})
    return done.stdout
