#!/usr/bin/env python3
"""How many fences do programs need, for what, and how soon is that known?

Three parts. The mutual exclusion algorithms and others that are bundled: the fewest fences for the property, for
robustness and against triangular races. Larger ones, beside times that are given for Trencher. And Trencher's own
programs, if they lie in ../shared/corpora, beside the times that were recorded for it there: on another machine, and
so a ratio tells orders of magnitude and no more.

Writes fences.csv (one row for each run) and fences.md (the summary) beside itself.

    results/fences.py [--runs 5]
"""

import argparse
import json

import measure
from measure import OVERTAKE, ROOT, best, run, seconds, table

PROGRAMS = [
    "dekker/dekker",
    "peterson/peterson",
    "peterson/filter",
    "burns/burns",
    "dijkstra/dijkstra",
    "knuth/knuth",
    "eisenberg-mcguire/eisenberg-mcguire",
    "szymanski/szymanski",
    "lamport/lamport1",
    "lamport/lamport2",
    "bakery/bakery",
    "bakery/bakery-loop",
    "parker/parker",
]
AIMS = ["property", "robustness", "triangular"]
# The program, its parameters, and the seconds given for Trencher's fences for robustness.
LARGER = [
    ("lamport/lamport1", ["-DN=3"], None),
    ("lamport/lamport1", ["-DN=4"], 50),
    ("lamport/lamport1", ["-DN=5"], None),
    ("deque/the", [], 6),
]
CORPUS = ROOT.parent / "shared" / "corpora" / "trencher"
TIMEOUT = "30s"


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--runs", type=int, default=5)
    runs = options.parse_args().runs
    measure.build()
    load_before = measure.load()
    rows = []

    def fence(name, path, aim, arguments=()):
        found = []
        for _ in range(runs):
            command = [OVERTAKE, "fence", "--per-thread", "--json", "--for", aim, "--timeout", TIMEOUT, *arguments, path]
            output, times = run(command, good=(0, 5, 10))
            answer = json.loads(output)
            row = {"program": name, "for": aim, "verdict": answer["verdict"], "cost": answer.get("cost")}
            row |= {"proved": answer.get("optimal"), "checks": answer["checks"], "cores": answer["cores"], **times}
            found.append(row)
            if times["wall_s"] > 5:
                break
        rows.extend(found)
        return found

    summary = "# Fewest fences\n\n" + __doc__.strip().split("\n\n")[0] + "\n\n"
    bundled = []
    for name in PROGRAMS:
        cells = [f"`{name}`"]
        for aim in AIMS:
            found = fence(name, f"programs/{name}.tso", aim)
            cells += [size(found[0]), seconds(best(found))]
        bundled.append(cells)
    larger = []
    for name, arguments, given in LARGER:
        found = fence(" ".join([name, *arguments]), f"programs/{name}.tso", "robustness", arguments)
        larger.append([f"`{name}` {' '.join(arguments)}", size(found[0]), seconds(best(found)), *ratio(given, found)])
    recorded = []
    for row in corpus():
        found = fence(row["file"], CORPUS / row["file"], "robustness")
        assert found[0]["cost"] == row["expect"], row
        recorded.append([row["file"], size(found[0]), seconds(best(found)), *ratio(row["theirs"], found)])
    summary += measure.machine(load_before)
    summary += f"\nTimes are of the whole process, in seconds, the least of {runs} runs (of one, if it took long).\n"
    header = ["program"] + [word for aim in AIMS for word in (f"for {aim}", "s")]
    summary += "\n## Bundled programs\n\n`≤` stands before a number that is enough and not proved the least.\n\n"
    summary += table(header, bundled)
    header = ["program", "fences", "s", "Trencher, s", "times as fast"]
    summary += "\n## For robustness, larger\n\nTrencher's times are given, not measured here.\n\n"
    summary += table(header, larger)
    if recorded:
        summary += "\n## Trencher's own programs\n\nThe numbers of fences are the same as Trencher's, all of them.\n\n"
        summary += table(header, recorded)
    measure.write_rows("fences.csv", rows)
    (ROOT / "results" / "fences.md").write_text(summary)


def size(row):
    if row["cost"] is None:
        return row["verdict"]
    return str(row["cost"]) if row["proved"] else f"≤ {row['cost']}"


def ratio(given, found):
    if not given:
        return ["", ""]
    return [given, f"{given / best(found):.0f}"]


def corpus():
    try:
        text = (CORPUS / "expected.jsonl").read_text()
    except OSError:
        print(f"skipped: there are no programs at {CORPUS}")
        return []
    rows = [json.loads(line) for line in text.splitlines()]
    return [row for row in rows if row.get("field") == "fences"]


if __name__ == "__main__":
    main()
