#!/usr/bin/env python3
"""What a second worker is good for: larger programs with one worker and with two, taking turns.

As a control, two processes of one worker each run at the same time. They share nothing, so what they gain over
running one after the other is all that the machine has to give at that moment: 2 if it is idle, 1 if there is no
second core to be had. A gain of two workers means little without it.

Writes scaling.csv (one row for each run) and scaling.md (the summary) beside itself.

    results/scaling.py [--runs 7]
"""

import argparse
from concurrent.futures import ThreadPoolExecutor

import measure
from measure import OVERTAKE, best, count, median, number, run, seconds, table

PROGRAMS = [
    ("programs/burns/burns.tso", 7, "sc"),
    ("programs/mcs/mcs.tso", 6, "sc"),
    ("programs/dijkstra/dijkstra.tso", 5, "sc"),
    ("programs/lamport/lamport2.tso", 5, "sc"),
    ("programs/szymanski/szymanski-fenced.tso", 5, "tso"),
    ("programs/peterson/filter.tso", 5, "sc"),
]
# The program, its size and the gain that is claimed for it.
CLAIM = ("burns", 7, 1.7)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--runs", type=int, default=7)
    options = options.parse_args()
    measure.build()
    load_before = measure.load()
    rows = []
    for program, size, model in PROGRAMS:
        for turn in range(options.runs):
            for workers in [1, 2]:
                rows.append({"run": turn + 1, "kind": "check", **once(program, size, model, workers)})
            pair = twice(program, size, model)
            rows.append({"run": turn + 1, "kind": "control", **pair})
        print(f"{program} N = {size} done", flush=True)
    measure.write_rows("scaling.csv", rows)
    circumstances = measure.machine(load_before)
    (measure.ROOT / "results" / "scaling.md").write_text(summary(rows, circumstances, options.runs))


def once(program, size, model, workers):
    command = ["check", "-v", program, "-D", f"N={size}", "--model", model, "--threads", str(workers)]
    output, took = run([OVERTAKE, *command])
    return {
        "program": program.split("/")[-1].removesuffix(".tso"),
        "N": size,
        "model": model,
        "workers": workers,
        "verdict": output.split()[0],
        "states": int(number(r"states +(\d+)", output)),
        "transitions": int(number(r"transitions +(\d+)", output)),
        "bytes_per_state": number(r"per state +([\d.]+)", output),
        "memory_mib": number(r"peak memory +([\d.]+)", output),
        **took,
        "command": " ".join(["overtake", *command]),
    }


def twice(program, size, model):
    """Two processes at once; the time is that of the later one to end."""
    with ThreadPoolExecutor(2) as pool:
        both = list(pool.map(lambda _: once(program, size, model, 1), range(2)))
    return max(both, key=lambda r: r["wall_s"])


def summary(rows, circumstances, runs):
    text = "# One worker and two\n\n"
    text += "Written by `results/scaling.py`; every run is a row of [scaling.csv](scaling.csv).\n\n" + circumstances
    text += f"- {runs} runs of each, taking turns; wall time of whole processes, in seconds\n"
    text += "- gain: the time of one worker divided by that of two\n"
    text += "- room: twice the least time of one worker, divided by the least time of two processes of one worker each"
    text += " that ran at\n  once; what an ideal second worker could have gained on the machine as it was\n\n"
    lines = []
    for key in dict.fromkeys((r["program"], r["N"], r["model"]) for r in rows):
        one, two = (pick(rows, key, workers) for workers in [1, 2])
        name = f"{key[0]}, N = {key[1]}, {key[2].upper()}"
        memory = [f"{max(r['memory_mib'] for r in own):.0f}" for own in (one, two)]
        lines.append([name, count(one[0]["states"]), f"{one[0]['bytes_per_state']:.1f}", *memory,
                      seconds(best(one)), seconds(best(two)), f"{best(one) / best(two):.2f}",
                      f"{median(one) / median(two):.2f}", f"{room(rows, key):.2f}"])
    text += table(["program", "states", "bytes/state", "MiB, one", "MiB, two", "least, one", "least, two",
                   "gain (least)", "gain (median)", "room"], lines)
    return text + claim(rows) + commands(rows)


def pick(rows, key, workers, kind="check"):
    own = [r for r in rows if (r["program"], r["N"], r["model"]) == key and r["kind"] == kind]
    return [r for r in own if r["workers"] == workers]


def room(rows, key):
    return 2 * best(pick(rows, key, 1)) / best(pick(rows, key, 1, "control"))


def claim(rows):
    program, size, wanted = CLAIM
    key = (program, size, "sc")
    gain = best(pick(rows, key, 1)) / best(pick(rows, key, 2))
    # Without a second core to be had, a small gain says nothing about the workers.
    failed = "did not hold" if room(rows, key) >= wanted else "could not be tested"
    held = "held" if gain >= wanted else failed
    text = f"\nClaimed: two workers beat one by {wanted} or more on {program} with N = {size}. "
    return text + f"{held.capitalize()}: {gain:.2f}, where the machine had room for {room(rows, key):.2f}.\n"


def commands(rows):
    shown = dict.fromkeys(r["command"] for r in rows)
    return "\n## Commands\n\n" + "".join(f"    {line}\n" for line in shown)


if __name__ == "__main__":
    main()
