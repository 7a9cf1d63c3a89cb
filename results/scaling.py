#!/usr/bin/env python3
"""What a second worker is good for: larger programs with one worker and with two, taking turns.

Writes scaling.csv (one row for each run) and scaling.md (the summary) beside itself.

    results/scaling.py [--runs 7]
"""

import argparse

import measure
from measure import OVERTAKE, best, count, median, number, run, seconds, table

PROGRAMS = [
    ("programs/lamport/lamport1.tso", 6, "sc"),
    ("programs/lamport/lamport1.tso", 7, "sc"),
    ("programs/peterson/filter.tso", 4, "sc"),
    ("programs/szymanski/szymanski.tso", 4, "sc"),
    ("programs/bakery/bakery.tso", 4, "sc"),
    ("programs/bakery/bakery-fenced.tso", 4, "tso"),
]
# The program, its size and the gain that is claimed for it.
CLAIM = ("lamport1", 6, 1.6)


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
                rows.append({"run": turn + 1, **once(program, size, model, workers)})
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


def summary(rows, circumstances, runs):
    text = "# One worker and two\n\n"
    text += "Written by `results/scaling.py`; every run is a row of [scaling.csv](scaling.csv).\n\n" + circumstances
    text += f"- {runs} runs of each, taking turns; wall time of whole processes, in seconds\n"
    text += "- gain: the time of one worker divided by that of two\n\n"
    lines = []
    for key in dict.fromkeys((r["program"], r["N"], r["model"]) for r in rows):
        one, two = (pick(rows, key, workers) for workers in [1, 2])
        name = f"{key[0]}, N = {key[1]}, {key[2].upper()}"
        memory = [f"{max(r['memory_mib'] for r in own):.0f}" for own in (one, two)]
        lines.append([name, count(one[0]["states"]), f"{one[0]['bytes_per_state']:.1f}", *memory,
                      seconds(best(one)), seconds(best(two)), f"{best(one) / best(two):.2f}",
                      f"{median(one) / median(two):.2f}"])
    text += table(["program", "states", "bytes/state", "MiB, one", "MiB, two", "least, one", "least, two",
                   "gain (least)", "gain (median)"], lines)
    return text + claim(rows) + commands(rows)


def pick(rows, key, workers):
    return [r for r in rows if (r["program"], r["N"], r["model"]) == key and r["workers"] == workers]


def claim(rows):
    program, size, wanted = CLAIM
    key = (program, size, "sc")
    gain = best(pick(rows, key, 1)) / best(pick(rows, key, 2))
    held = "held" if gain >= wanted else "did not hold"
    return f"\nClaimed: two workers beat one by {wanted} or more on {program} with N = {size}. {held.capitalize()}: {gain:.2f}.\n"


def commands(rows):
    shown = dict.fromkeys(r["command"] for r in rows)
    return "\n## Commands\n\n" + "".join(f"    {line}\n" for line in shown)


if __name__ == "__main__":
    main()
