#!/usr/bin/env python3
"""Which questions about the bundled programs take longest, and where does their time go?

Every bundled program is asked everything: is it safe under SC and under TSO, is it robust, has it triangular races,
and which fewest fences repair it. A program with a parameter N is asked with its own value and with the next two.
What takes longest is run again under perf, and its samples are summed up by part of the program.

Writes slowest.csv (one row for each run) and slowest.md (the summary) beside itself; with --only, which is for a look
at some programs, it prints the summary and writes nothing.

    results/slowest.py [--limit 10s] [--only SUBSTRING]
"""

import argparse
import json
import re
import subprocess
import tempfile
from collections import Counter

import measure
from measure import OVERTAKE, ROOT, count, run, seconds, table

COMMANDS = ["check --model sc", "check --model tso", "robust", "robust --triangular", "fence"]
# How much larger than in its file a program's parameter N is taken.
LARGER = [0, 1, 2]
PARAMETER = re.compile(r"^\s*param\s+N\s*=\s*(\d+)", re.MULTILINE)
PROFILED = 10
SHOWN = 25
HEADER = ["program", "command", "verdict", "s", "states"]
PERF = ["perf", "record", "--quiet", "--no-buildid-cache", "-e", "cpu-clock", "-F", "999"]
# The modules that are parts by the modules in them; every other module is one part.
DIVIDED = ["reach", "robust"]
OWN = re.compile(r"<*(?:&(?:mut )?)?overtake::(\w+)(?:::([a-z_]+)\b)?")
# Symbols of others, by the first pattern that they begin with.
OTHERS = [
    ("Rust's library", re.compile(r"<*(&|mut )*((core|alloc|std|hashbrown)::|\[?T\b)")),
    ("memory copies", re.compile(r"\w*mem(move|p?cpy)")),
    ("allocator", re.compile(r"(__rustc::)?\w*(alloc|free|chunk)")),
]


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--limit", type=duration, default="10s", help="the time for each run, as in 10s or 0.5s")
    options.add_argument("--only", metavar="SUBSTRING", help="only programs with this in their path")
    options = options.parse_args()
    measure.build()
    load_before = measure.load()
    rows = []
    for program, n in questions(options.only or ""):
        rows += [once(program, n, command, options.limit) for command in COMMANDS]
        print(f"{program}{f', N = {n}' if n else ''} done", flush=True)
    if not rows:
        raise SystemExit(f"there is no program with {options.only} in its path")
    ranked = sorted(rows, key=rank)
    why_not = missing_perf()
    profiles = [] if why_not else [profile(row) for row in ranked[:PROFILED]]
    circumstances = measure.machine(load_before, *([] if why_not else [("perf", "--version")]))
    text = summary(ranked, profiles, why_not, circumstances, options.limit)
    if options.only:
        print(text)
        return
    measure.write_rows("slowest.csv", rows)
    (ROOT / "results" / "slowest.md").write_text(text)


def duration(text):
    return float(text.removesuffix("s"))


def questions(only):
    """The programs, each with the values to give to its parameter N; None if it has none."""
    for path in sorted((ROOT / "programs").rglob("*.tso")):
        program = str(path.relative_to(ROOT))
        if only in program:
            own = PARAMETER.search(path.read_text())
            yield from ((program, int(own.group(1)) + more if own else None) for more in (LARGER if own else [0]))


def once(program, n, command, limit):
    define = ["-D", f"N={n}"] if n else []
    arguments = [*command.split(), "--json", "--threads", "1", "--timeout", f"{limit:g}s", *define, program]
    output, took = run([OVERTAKE, *arguments], good=(0, 5, 10))
    answer = json.loads(output)
    return {
        "program": program.removeprefix("programs/").removesuffix(".tso"),
        "N": n,
        "command": command,
        "verdict": answer["verdict"],
        "proved": answer.get("optimal"),
        "at_limit": took["wall_s"] >= limit,
        "states": answer.get("states"),
        **took,
        "arguments": " ".join(["overtake", *arguments]),
    }


def decided(row):
    """Not so if the verdict is `unknown`, or if there are fences and something cheaper may do."""
    return row["verdict"] != "unknown" and row["proved"] is not False


def rank(row):
    """The slowest first. What is undecided at the limit would take longer still. All of that took about as long, so
    those come first that stored the fewest states in it."""
    if row["at_limit"] and not decided(row):
        return 0, row["states"] or 0
    return 1, -row["wall_s"]


def missing_perf():
    """Why there can be no profiles; None if there can."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            tried = subprocess.run([*PERF, "-o", f"{folder}/data", "--", "true"], capture_output=True)
        except OSError:
            return "there is no perf on this machine"
    return "perf may not sample on this machine" if tried.returncode else None


def profile(row):
    """Samples of the same run once more, by part of the program."""
    with tempfile.TemporaryDirectory() as folder:
        data = f"{folder}/data"
        run([*PERF, "-o", data, "--", OVERTAKE, *row["arguments"].split()[1:]], good=(0, 5, 10))
        report = ["perf", "report", "-q", "-i", data, "--no-children", "--stdio", "-F", "sample,symbol", "-t", "|"]
        lines, _ = run(report)
    samples = Counter()
    for line in lines.splitlines():
        number, bar, symbol = line.partition("|")
        if bar:
            samples[part(symbol.strip())] += int(number)
    print(f"{name(row)}, {row['command']} profiled", flush=True)
    return samples


def part(symbol):
    """The part of the program that a symbol belongs to. Before it stands `[k]` if it is the kernel's."""
    kind, _, symbol = symbol.partition(" ")
    if kind == "[k]":
        return "kernel"
    own = OWN.match(symbol)
    if own:
        module, inner = own.groups()
        return f"{module}::{inner}" if module in DIVIDED and inner else module
    return next((title for title, pattern in OTHERS if pattern.match(symbol)), "other")


def summary(ranked, profiles, why_not, circumstances, limit):
    text = "# What takes longest\n\n"
    text += "Written by `results/slowest.py`; every run is a row of [slowest.csv](slowest.csv).\n\n" + circumstances
    text += f"- one run of each program and command, with one worker and a limit of {limit:g} s; wall time of whole"
    text += " processes, in seconds\n\n"
    return text + totals(ranked) + slowest(ranked, profiles, why_not) + following(ranked) + commands(ranked)


def totals(ranked):
    times = [r["wall_s"] for r in ranked]
    below = [(f"less than {title}", sum(t < bound for t in times))
             for title, bound in [("10 ms", 0.01), ("100 ms", 0.1), ("1 s", 1)]]
    lines = [*below, ("any time", len(times))]
    text = table(["took", "pairs", "share"], [[title, count(n), f"{n / len(times):.1%}"] for title, n in lines])
    undecided = [r for r in ranked if not decided(r)]
    unknown = sum(r["verdict"] == "unknown" for r in undecided)
    early = sum(not r["at_limit"] for r in undecided)
    text += f"\nAll together took {sum(times):.1f} s. Undecided are {len(undecided)}: {unknown} ended with `unknown`,"
    text += f" {len(undecided) - unknown} with fences that are not\nproved the cheapest. Of all these, {early} ended"
    return text + " before the time was up: `overtake fence` bounds the states\nof each choice too.\n"


def slowest(ranked, profiles, why_not):
    lines = [cells(r) for r in ranked[:PROFILED]]
    text = f"\n## The {len(lines)} slowest\n\nWhat is undecided is in bold. If it was at the limit, it would take"
    text += " longer still and comes first; of that, what stored\nthe fewest states. The rest goes by time.\n\n"
    if why_not:
        return text + f"Where the time goes is left out: {why_not}.\n\n" + table(HEADER, lines)
    text += "The shares are of perf's samples (`cpu-clock`, 999 each second) in a run of its own, by the module of the"
    text += " function\nthat was sampled. The compiler inlines much: a part's share has in it what was inlined into the"
    text += " part's functions, and\nlacks what was inlined elsewhere. Rust's library is its code for iterators,"
    text += " collections and hashing that was not\ninlined, whoever called it.\n\n"
    for line, samples in zip(lines, profiles):
        whole = sum(samples.values())
        line.append(", ".join(f"{title} {n / whole:.0%}" for title, n in samples.most_common(3)))
    return text + table([*HEADER, "largest shares"], lines)


def following(ranked):
    rest = ranked[PROFILED:SHOWN]
    if not rest:
        return ""
    return f"\n## The next {len(rest)}\n\n" + table(HEADER, [cells(r) for r in rest])


def cells(row):
    verdict = row["verdict"] if row["proved"] is not False else f"{row['verdict']}, not proved cheapest"
    verdict = verdict if decided(row) else f"**{verdict}**"
    states = "-" if row["states"] is None else count(row["states"])
    return [name(row), f"`{row['command']}`", verdict, seconds(row["wall_s"]), states]


def name(row):
    return f"{row['program']}, N = {row['N']}" if row["N"] else row["program"]


def commands(ranked):
    return "\n## Commands\n\n" + "".join(f"    {r['arguments']}\n" for r in ranked[:PROFILED])


if __name__ == "__main__":
    main()
