#!/usr/bin/env python3
"""Tests of the two-lock queue, repaired, on the relaxed model, beside the figures of the paper that the tests are from.

    results/datatypes.py [OVERTAKE] [LIMIT]

writes `datatypes.csv` and `datatypes.md`. Without OVERTAKE the release binary is built. Behind the tests of the paper come
longer ones with one producer and one consumer, until one of them has no answer within LIMIT (600s if nothing is said).
Times are processor time of whole processes, which other work on the machine disturbs less than wall time.
"""

import json
import sys
import tempfile
from pathlib import Path

import measure

# Test: instructions, loads, stores, variables, clauses, kB, seconds, as published; nothing for no figure.
PAPER = {
    "T0": (65, 12, 18, 551, 4081, 332, 0.004),
    "T1": (119, 23, 30, 1514, 44479, 4165, 0.87),
    "T5_3": (163, 31, 44, 3380, 160516, 16246, 9.33),
    "T5_4": (163, 31, 44, 3400, 167456, 16308, 21.1),
    "T5_5": (163, 31, 44, 3413, 173324, 16357, 35.4),
    "T5_6": (163, 31, 44, 3419, 179109, 16401, 42.8),
    "Tpc2": (119, 23, 30, 1504, 42829, 4151, 0.139),
    "Tpc3": (173, 34, 42, 3717, 170116, 16320, 5.23),
    "Tpc4": (227, 45, 54, 5797, 430445, 33372, 45.7),
    "Tpc5": (281, 56, 66, 8315, 877624, 100462, 300.0),
    "Tpc6": (335, 67, 78, 11271, 1549090, 131087, 886.3),
    "Tpc7": (389, 78, 90, 12394, 2438721, None, None),
}
SIZES = ["instructions", "loads", "stores", "variables", "clauses"]
COLUMNS = [*SIZES, "kb", "seconds"]
FILE = measure.ROOT / "datatypes" / "two_lock_queue.dt"


def answer(overtake, file, test, limit):
    """What the tool says of a test, and the processor time of the process."""
    command = [overtake, "datatype", file, "--test", test, "--model", "relaxed", "--with", "publish,consume", "--json"]
    output, times = measure.run([*command, "--timeout", limit], good=(0, 5))
    return json.loads(output), round(times["user_s"] + times["sys_s"], 3)


def main():
    overtake = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else measure.OVERTAKE
    limit = sys.argv[2] if len(sys.argv) > 2 else "600s"
    if len(sys.argv) < 2:
        measure.build()
    measure.OVERTAKE = overtake
    before, rows = measure.load(), []
    with tempfile.TemporaryDirectory() as place:
        longer = Path(place) / FILE.name
        tests = list(PAPER) + [f"Tpc{n}" for n in range(8, 20)]
        text = FILE.read_text()
        for test in tests[len(PAPER):]:
            count = test.removeprefix("Tpc")
            text += f"test {test} = enqueue*{count} | dequeue*{count}\n"
        longer.write_text(text)
        for test in tests:
            found, seconds = answer(overtake, longer, test, limit)
            row = {"test": test, "verdict": found["verdict"]}
            row |= {name: found[name] for name in SIZES} | {"kb": found["peak_kb"], "seconds": seconds}
            paper = PAPER.get(test, [None] * len(COLUMNS))
            rows.append(row | {f"paper_{name}": value for name, value in zip(COLUMNS, paper)})
            print(row, flush=True)
            if found["verdict"] == "unknown":
                break
    write(rows, before, limit)


def write(rows, before, limit):
    measure.write_rows("datatypes.csv", rows)
    shown = lambda value: "" if value is None else f"{value:,}"
    both = [[r["test"], r["verdict"]] + [f"{shown(r[c])} ({shown(r['paper_' + c])})".replace(" ()", "") for c in COLUMNS]
            for r in rows]
    header = ["test", "verdict", "instructions", "loads", "stores", "variables", "clauses", "kB", "seconds"]
    summary = f"""# Tests of data types

Written by `results/datatypes.py`; the rows are in [datatypes.csv](datatypes.csv). The two-lock queue with its two fences
on `relaxed`, which it passes; in parentheses what the paper on these tests gives for its own tool, on a machine of 2004.

{measure.machine(before)}
{measure.table(header, both)}
Memory and time are those of whole processes, time that of processors, with {limit} of wall time for each. Variables and
clauses are those of the question whether something is observed that no serial run gives; whether a thread goes
wrong or waits for good is asked of another formula. There are fewer accesses than in the paper since operations that run
alone, before the test, are performed and not encoded, and since `lock` and `free` do not check what they release.
"""
    (measure.ROOT / "results" / "datatypes.md").write_text(summary)


main()
