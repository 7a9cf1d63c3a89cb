#!/usr/bin/env python3
"""How soon are questions under TSO answered, and what is the oracle's share of it?

Two parts. The programs of the paper (Lazy TSO reachability, 2015), beside times that are given for its tool,
Trencher. Those come from another machine and are not measured here, so a ratio tells orders of magnitude and no
more. And every bundled program that is robust: how many attacks the text leaves to the search, and how much of the
time of a check goes to the oracle.

Writes lazy.csv (one row for each run) and lazy.md (the summary) beside itself.

    results/lazy.py [--runs 7] [--runs-large 2]
"""

import argparse
import json
import re

import measure
from measure import OVERTAKE, best, count, median, run, seconds, table

# The program, and the sizes to run it with.
PROGRAMS = [
    ("lamport/lamport1.tso", [2, 3, 4, 5, 6]),
    ("dekker/simple.tso", [None]),
    ("dekker/dekker.tso", [None]),
    ("diamond/diamond.tso", [10, 50, 200]),
    ("loop/loop.tso", [20, 50, 100]),
]
# These take long.
LARGE = [("lamport/lamport1.tso", 6)]
# Seconds given for Trencher, on a machine that is said to be comparable and is not this one.
GIVEN = {
    ("lamport/lamport1.tso", 4): 17,
    ("dekker/dekker.tso", None): 0.04,
    ("diamond/diamond.tso", 200): 0.37,
    ("loop/loop.tso", 50): 0.58,
    ("loop/loop.tso", 100): 6,
}
REMARKS = {("lamport/lamport1.tso", 4): "620 MB", ("lamport/lamport1.tso", 5): "no answer, out of memory"}
EXPECTED = re.compile(r'\(file: "([^"]+)"(?:, define: \{([^}]*)\})?, sc: (\w+), tso: \w+, robust: (\w+)')


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--runs", type=int, default=7)
    options.add_argument("--runs-large", type=int, default=2, help="runs of programs that take long")
    options = options.parse_args()
    measure.build()
    load_before = measure.load()
    rows = []
    questions = [(program, {"N": n} if n else {}) for program, sizes in PROGRAMS for n in sizes]
    for turn in range(options.runs):
        for program, define in questions:
            large = (program, define.get("N")) in LARGE
            if turn < (options.runs_large if large else options.runs):
                rows.append({"part": "paper", "run": turn + 1, **once(program, define)})
        rows += [{"part": "robust", "run": turn + 1, **once(*question)} for question in robust()]
        print(f"turn {turn + 1} of {options.runs} done", flush=True)
    measure.write_rows("lazy.csv", rows)
    circumstances = measure.machine(load_before)
    (measure.ROOT / "results" / "lazy.md").write_text(summary(rows, circumstances, options))


def robust():
    """The bundled programs that are robust and safe: the others are answered before the oracle is asked."""
    for file in sorted((measure.ROOT / "programs").glob("*/expected.ron")):
        for name, define, sc, is_robust in EXPECTED.findall(file.read_text()):
            if is_robust == "true" and sc == "safe":
                yield f"{file.parent.name}/{name}", dict(re.findall(r'"(\w+)": (-?\d+)', define))


def once(program, define):
    parameters = [f"{name}={value}" for name, value in define.items()]
    flags = [part for p in parameters for part in ("-D", p)]
    command = ["check", "--json", f"programs/{program}", *flags]
    output, took = run([OVERTAKE, *command], good=(0, 10))
    answer = json.loads(output)
    first = answer["rounds"][0]["attacks"]
    total = lambda field: round(sum(r[field] for r in answer["rounds"]), 3)
    return {
        "program": program,
        "parameters": " ".join(parameters),
        "verdict": answer["verdict"],
        "engine": answer["engine"],
        "rounds": answer["iterations"],
        "states": answer["states"],
        "attacks": first["total"],
        "searched": first["searched"],
        "sc_ms": total("time_ms"),
        "oracle_ms": total("oracle_time_ms"),
        "inner_ms": round(answer["time_ms"], 3),
        "memory_mib": round(answer["peak_kb"] / 1024, 1),
        **took,
        "command": " ".join(["overtake", *command]),
    }


def summary(rows, circumstances, options):
    text = "# Answers under TSO\n\n"
    text += "Written by `results/lazy.py`; every run is a row of [lazy.csv](lazy.csv).\n\n" + circumstances
    text += f"- {options.runs} runs of each ({options.runs_large} of what takes long), taking turns; wall time of whole"
    text += " processes, in seconds\n- attacks are those of the first round, searched those that the program's text does"
    text += " not refute\n\n"
    return text + beside_given(rows) + shares(rows) + commands(rows)


def beside_given(rows):
    text = "## Beside times given for another tool\n\nThe times given are **not measured here**. They are figures for"
    text += " Trencher, the tool of the paper (Lazy TSO reachability,\n2015), from a run on another machine, said to be"
    text += " comparable. The ratio is the given time divided by the least time\nhere; it tells orders of magnitude and no"
    text += " more.\n\n"
    lines = []
    for key, own in groups(rows, "paper"):
        n = int(key[1].removeprefix("N=")) if key[1] else None
        given = GIVEN.get((key[0], n))
        shown = ", ".join(filter(None, [given and f"{given} s", REMARKS.get((key[0], n))]))
        lines.append([name(key), own[0]["verdict"], own[0]["rounds"], count(median(own, "states")), len(own),
                      seconds(best(own)), seconds(median(own)), f"{max(r['memory_mib'] for r in own):.1f}",
                      shown or "-", f"{given / best(own):.1f}" if given else "-"])
    return text + table(["program", "verdict", "rounds", "states", "runs", "least", "median", "MiB",
                         "given (Trencher, another machine)", "ratio"], lines)


def shares(rows):
    text = "\n## The oracle's share\n\nEvery bundled program that is robust and safe: one SC check, one question to the"
    text += " oracle. Times in milliseconds, the median\nof each; share is the oracle's part of the whole check without"
    text += " reading the program.\nPrograms that are robust and violated under SC are left out: the oracle is not asked"
    text += " about them.\n\n"
    lines, whole, oracle, attacks, searched = [], 0, 0, 0, 0
    for key, own in groups(rows, "robust"):
        of = lambda column: median(own, column)
        lines.append([name(key), own[0]["attacks"], own[0]["searched"], f"{of('sc_ms'):.2f}", f"{of('oracle_ms'):.2f}",
                      f"{of('inner_ms'):.2f}", f"{of('oracle_ms') / of('inner_ms'):.0%}"])
        whole, oracle = whole + of("inner_ms"), oracle + of("oracle_ms")
        attacks, searched = attacks + own[0]["attacks"], searched + own[0]["searched"]
    undisturbed = sum(1 for line in lines if line[2] == 0)
    text += table(["program", "attacks", "searched", "SC check", "oracle", "whole", "share"], lines)
    text += f"\nAll together: {count(attacks)} attacks, {count(searched)} of them left to the search, none in"
    text += f" {undisturbed} of {len(lines)} programs; the oracle\ntook {oracle:.1f} of {whole:.1f} ms,"
    return text + f" {oracle / whole:.0%}.\n"


def groups(rows, part):
    rows = [r for r in rows if r["part"] == part]
    for key in dict.fromkeys((r["program"], r["parameters"]) for r in rows):
        yield key, [r for r in rows if (r["program"], r["parameters"]) == key]


def name(key):
    program = key[0].removesuffix(".tso")
    return f"{program}, {key[1].replace('=', ' = ')}" if key[1] else program


def commands(rows):
    shown = dict.fromkeys(r["command"] for r in rows if r["part"] == "paper")
    return "\n## Commands\n\n" + "".join(f"    {line}\n" for line in shown)


if __name__ == "__main__":
    main()
