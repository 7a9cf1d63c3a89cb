#!/usr/bin/env python3
"""Do fixed runs take as many instructions as before? A guard that does not look at the clock.

Counts the instructions of whole processes of the release binary with valgrind's callgrind, one worker each, and holds
them against `instructions.csv`: more than the tolerance above what is written there is a failure, as much below is
worth writing down. `OVERTAKE_BLESS=1 results/instructions.py` writes the file anew. Says so and does nothing where there
is no valgrind. The counts are those of one compiler; after a change of compilers they are blessed anew.
"""

import csv
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import measure

FILE = Path(__file__).with_suffix(".csv")
TOLERANCE = 0.05
RUNS = [
    "check -q programs/litmus/sb.tso",
    "check -q programs/lamport/lamport1.tso -D N=4",
    "check -q programs/lamport/lamport1.tso -D N=6 --model sc",
    "check -q programs/lamport/lamport1.tso -D N=5 --model sc --no-symmetry",
    "check -q programs/lamport/lamport2.tso -D N=3 --model sc",
    "check -q programs/peterson/filter.tso -D N=3 --model sc",
    "check -q programs/bakery/bakery-fenced.tso -D N=2 --engine explicit",
    "check -q programs/diamond/diamond.tso -D N=50",
    "check -q programs/loop/loop.tso -D N=50",
    "robust -q programs/treiber/treiber.tso",
]


def instructions(arguments):
    with tempfile.TemporaryDirectory() as folder:
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out", str(measure.OVERTAKE)]
        command += arguments.split() + ["--threads", "1"]
        done = subprocess.run(command, cwd=measure.ROOT, capture_output=True, text=True)
    found = re.search(r"Collected : (\d+)", done.stderr)
    if not found or done.returncode not in (0, 5, 10):
        sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr}")
    return int(found.group(1))


def main():
    if not shutil.which("valgrind"):
        print("skipped: there is no valgrind")
        return
    measure.build()
    now = {run: instructions(run) for run in RUNS}
    if os.environ.get("OVERTAKE_BLESS"):
        with FILE.open("w", newline="") as file:
            rows = csv.writer(file, lineterminator="\n")
            rows.writerow(["run", "instructions"])
            rows.writerows(now.items())
        return
    with FILE.open(newline="") as file:
        before = {row["run"]: int(row["instructions"]) for row in csv.DictReader(file)}
    worse = 0
    for run, count in now.items():
        ratio = count / before[run] if run in before else float("inf")
        word = "worse" if ratio > 1 + TOLERANCE else "better" if ratio < 1 - TOLERANCE else "same"
        worse += word == "worse"
        print(f"{ratio:6.3f}  {word:6}  {count:>14,}  {run}")
    sys.exit(1 if worse else 0)


if __name__ == "__main__":
    main()
