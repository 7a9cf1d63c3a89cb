#!/usr/bin/env python3
"""DVE models of BEEM beside SPIN: states, processor time and memory per state, as CSV.

    results/models.py FOLDER OVERTAKE > results/models.csv

FOLDER holds the models. SPIN gets what `overtake convert --to promela` writes, without reduction, so that both
visit the same states; `pan` is compiled with -O2. Processor time is that of all threads. Memory is what states and the
table that finds them take; SPIN's table has 2^20 places.
"""

import json
import os
import re
import resource
import subprocess
import sys
import tempfile

INSTANCES = ["peterson.4", "lamport.5", "szymanski.3", "lamport_nonatomic.4", "fischer.4", "at.3", "mcs.3"]


def run(command, **options):
    """The output of a command, and the processor time that it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True, **options)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    time = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return done.stdout, time


def spin(model, overtake, folder):
    subprocess.run([overtake, "convert", model, "--to", "promela", "-o", "model.pml"], cwd=folder, check=True)
    subprocess.run(["spin", "-a", "model.pml"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    compiled = ["gcc", "-O2", "-w", "-DNOREDUCE", "-DSAFETY", "-o", "pan", "pan.c"]
    subprocess.run(compiled, cwd=folder, check=True)
    text, time = run(["./pan", "-m10000000", "-w20", "-n"], cwd=folder)
    states = int(re.search(r"(\d+) states, stored", text)[1])
    stored = re.search(r"([\d.]+)\s+actual memory usage for states", text)
    table = re.search(r"([\d.]+)\s+memory used for hash table", text)
    return states, time, (float(stored[1]) + float(table[1])) * 2**20 / states


def ours(model, overtake):
    text, time = run([overtake, "show", model, "--states", "--json"])
    answer = json.loads(text)
    return answer["states"], time, answer["bytes_per_state"]


def main():
    folder, overtake = map(os.path.abspath, sys.argv[1:3])
    print("model,states,spin_us,overtake_us,spin_bytes,overtake_bytes")
    for name in INSTANCES:
        model = os.path.join(folder, name + ".dve")
        with tempfile.TemporaryDirectory() as place:
            theirs = spin(model, overtake, place)
        own = ours(model, overtake)
        assert theirs[0] == own[0], (name, theirs, own)
        states = own[0]
        micro = [f"{1e6 * time / states:.2f}" for time in (theirs[1], own[1])]
        print(",".join([name, str(states), *micro, f"{theirs[2]:.1f}", f"{own[2]:.1f}"]), flush=True)


main()
