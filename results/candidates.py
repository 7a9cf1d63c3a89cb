#!/usr/bin/env python3
"""Do engines and candidates side by side answer sooner than engines that take turns?

Every bundled program that TSO breaks or that is safe without being robust, at the sizes below, with two workers
and with four: `--side-by-side` against turns, the default. Only what the first round leaves open is shown: the two are the
same until then.

Writes candidates.csv (one row for each run) and candidates.md (the summary) beside itself.

    results/candidates.py [--runs 5] [--timeout 20s]
"""

import argparse
import json
import math
import re

import measure
from measure import OVERTAKE, best, median, run, seconds, table

# Families that grow, and their sizes.
FAMILIES = {
    "loop/loop.tso": [20, 50, 100],
    "loop/loop-deep.tso": [3, 5, 8],
    "loop/countup.tso": [10, 50],
    "diamond/diamond.tso": [20, 200],
    "dijkstra/dijkstra-lean.tso": [3, 4],
    "knuth/knuth-lean.tso": [3, 4],
    "eisenberg-mcguire/eisenberg-mcguire.tso": [3, 4],
    "lamport/lamport1.tso": [3, 4, 5],
    "szymanski/szymanski.tso": [3, 4],
    "peterson/filter.tso": [3, 4],
    "bakery/bakery.tso": [3],
}
EXPECTED = re.compile(r'\(file: "([^"]+)"(?:, define: \{([^}]*)\})?, sc: (\w+), tso: (\w+), robust: (\w+)')
WAYS = {"side by side": ["--side-by-side"], "turns": []}
WORKERS = [2, 4]


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--runs", type=int, default=5)
    options.add_argument("--timeout", default="20s")
    options = options.parse_args()
    measure.build()
    load_before = measure.load()
    rows = []
    for question in filter(lambda q: is_contest(*q, options), sorted(questions())):
        for turn in range(options.runs):
            for workers in WORKERS:
                rows += [{"run": turn + 1, **once(*question, way, workers, options)} for way in WAYS]
        print(*question, flush=True)
    measure.write_rows("candidates.csv", rows)
    text = summary(rows, measure.machine(load_before), options)
    (measure.ROOT / "results" / "candidates.md").write_text(text)


def questions():
    """The programs that are not robust, and their sizes."""
    found = {(program, f"N={n}") for program, sizes in FAMILIES.items() for n in sizes}
    for file in (measure.ROOT / "programs").glob("*/expected.ron"):
        for name, define, sc, _, is_robust in EXPECTED.findall(file.read_text()):
            if sc == "safe" and is_robust == "false":
                parameters = " ".join("=".join(d) for d in re.findall(r'"(\w+)": (-?\d+)', define))
                found.add((f"{file.parent.name}/{name}", parameters))
    return {q for q in found if (measure.ROOT / "programs" / q[0]).exists()}


def is_contest(program, parameters, options):
    """Do turns leave anything to a contest?"""
    return once(program, parameters, "side by side", 2, options)["contest"]


def once(program, parameters, way, workers, options):
    flags = [part for p in parameters.split() for part in ("-D", p)]
    command = ["check", "--json", "--threads", workers, "--timeout", options.timeout, *WAYS[way],
               f"programs/{program}", *flags]
    output, took = run([OVERTAKE, *command], good=(0, 5, 10))
    answer = json.loads(output)
    return {
        "program": program,
        "parameters": parameters,
        "way": way,
        "workers": workers,
        "verdict": answer["verdict"],
        "engine": answer["engine"],
        "contest": "contest" in answer,
        "candidate": answer.get("contest", {}).get("won_by") or "",
        "states": answer["states"],
        **took,
    }


def summary(rows, circumstances, options):
    text = "# Engines and candidates side by side\n\n"
    text += "Written by `results/candidates.py`; every run is a row of [candidates.csv](candidates.csv).\n\n"
    text += circumstances + f"- {options.runs} runs of each, taking turns, with a limit of {options.timeout}; wall"
    text += " time of whole processes, in seconds\n- the ratio is the median time of turns divided by that side by side:"
    text += " more than 1 is a gain\n"
    for workers in WORKERS:
        text += f"\n## {workers} workers\n\n" + part([r for r in rows if r["workers"] == workers])
    return text


def part(rows):
    lines, ratios = [], []
    for key in sorted({(r["program"], r["parameters"]) for r in rows}):
        own = {way: [r for r in rows if (r["program"], r["parameters"], r["way"]) == (*key, way)] for way in WAYS}
        ratio = median(own["turns"]) / median(own["side by side"])
        ratios.append(ratio)
        winners = sorted({winner(r) for r in own["side by side"]})
        lines.append([" ".join(filter(None, key)), own["turns"][0]["verdict"],
                      *(seconds(f(own[way])) for way in WAYS for f in (best, median)), f"{ratio:.2f}",
                      ", ".join(winners)])
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    header = ["program", "verdict", "side by side: least", "median", "turns: least", "median", "ratio", "won by"]
    return table(header, lines) + f"\nThe mean of the ratios (geometric) is {mean:.2f}, the least {min(ratios):.2f}.\n"


def winner(row):
    return f"{row['engine']} {row['candidate']}".strip()


if __name__ == "__main__":
    main()
