#!/usr/bin/env python3
"""overtake and SPIN's verifier on the same program: Lamport's mutex under SC, with more and more processes.

Needs spin and gcc. Writes spin.csv (one row for each run) and spin.md (the summary) beside itself.

    results/spin.py [--sizes 3,4,5,6] [--runs 9]

SPIN gets what `convert --to promela` writes (its steps joined, the stronger opponent), and for the record also the
literal translation. Each verifier is compiled before the clock starts and runs in two ways: fitted (a stack
and a hash table as large as a first run has shown to be needed) and with SPIN's own defaults. overtake runs with
one worker and with two. All contestants take turns, so that whatever else the machine does hits all alike.
Times are those of whole processes: reading the program is included for overtake, generating and compiling
the verifier is not included for SPIN and is given apart.
"""

import argparse
import math
import tempfile
from pathlib import Path

import measure
from measure import OVERTAKE, best, count, median, number, run, seconds, table

PROGRAM = "programs/lamport/lamport1.tso"
GCC = ["gcc", "-O3", "-w", "-DSAFETY", "-DNOFAIR", "-o", "pan", "pan.c"]
# What is known of a literal model of this program with five processes in SPIN.
KNOWN_LITERAL_STATES = 1_300_000


def overtake(size, workers):
    return [OVERTAKE, "check", "-v", PROGRAM, "-D", f"N={size}", "--model", "sc", "--threads", str(workers)]


def prepare(size, literal, folder):
    """Converts, generates and compiles; gives the seconds that took and the fitted parameters."""
    folder.mkdir()
    flag = ["--literal"] if literal else []
    command = [OVERTAKE, "convert", PROGRAM, "-D", f"N={size}", "--to", "promela", "-o", folder / "m.pml"]
    took = [run(command + flag)[1], run(["spin", "-a", "m.pml"], folder)[1], run(GCC, folder)[1]]
    output, _ = run(["./pan", "-m1000000", "-w24"], folder)
    states, depth = number(r"(\d+) states, stored", output), number(r"depth reached (\d+)", output)
    fitted = [f"-m{max(1000, 2 * int(depth))}", f"-w{max(10, math.ceil(math.log2(states)) + 1)}"]
    return sum(t["wall_s"] for t in took), fitted


def read_spin(output):
    if "errors: 0" not in output or "max search depth too small" in output:
        raise SystemExit(f"SPIN did not finish:\n{output}")
    states = number(r"(\d+) states, stored", output)
    # What SPIN itself adds up: states, hash table and stack.
    megabytes = number(r"([\d.]+)\ttotal actual memory usage", output)
    return {
        "states": int(states),
        "transitions": int(number(r"(\d+) transitions", output)),
        "bytes_per_state": round(megabytes * 2**20 / states, 1),
        "memory_mib": megabytes,
        "inner_s": number(r"elapsed time ([\d.]+) seconds", output),
    }


def read_overtake(output):
    if not output.startswith("safe"):
        raise SystemExit(f"overtake did not say safe:\n{output}")
    return {
        "states": int(number(r"states +(\d+)", output)),
        "transitions": int(number(r"transitions +(\d+)", output)),
        "bytes_per_state": number(r"per state +([\d.]+)", output),
        "memory_mib": number(r"peak memory +([\d.]+)", output),
        "inner_s": number(r"time +([\d.]+)", output),
    }


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--sizes", default="3,4,5,6")
    options.add_argument("--runs", type=int, default=9)
    options.add_argument("--literal-up-to", type=int, default=5, help="the largest literal model to run")
    options = options.parse_args()
    sizes = [int(s) for s in options.sizes.split(",")]
    measure.build()
    load_before = measure.load()
    rows, prepared = [], {}
    with tempfile.TemporaryDirectory() as temporary:
        for size in sizes:
            contestants = [
                ("overtake, 1 worker", overtake(size, 1), measure.ROOT, read_overtake),
                ("overtake, 2 workers", overtake(size, 2), measure.ROOT, read_overtake),
            ]
            for literal in [False] + [True] * (size <= options.literal_up_to):
                kind = "literal" if literal else "joined"
                folder = Path(temporary) / f"{kind}{size}"
                prepared[size, kind], fitted = prepare(size, literal, folder)
                contestants.append((f"SPIN, {kind}, fitted", ["./pan", *fitted], folder, read_spin))
                contestants.append((f"SPIN, {kind}, defaults", ["./pan"], folder, read_spin))
            for turn in range(options.runs):
                for name, command, folder, read in contestants:
                    output, took = run(command, folder)
                    shown = " ".join(str(c) for c in command).replace(str(OVERTAKE), "overtake")
                    rows.append({"N": size, "contestant": name, "run": turn + 1, **read(output), **took,
                                 "command": shown})
            print(f"N = {size} done", flush=True)
    measure.write_rows("spin.csv", rows)
    circumstances = measure.machine(load_before, ("spin", "-V"), ("gcc", "--version"))
    (measure.ROOT / "results" / "spin.md").write_text(summary(rows, prepared, circumstances, options.runs))


def summary(rows, prepared, circumstances, runs):
    text = "# overtake and SPIN: Lamport's mutex under SC\n\n"
    text += "Written by `results/spin.py`; every run is a row of [spin.csv](spin.csv).\n\n" + circumstances
    text += f"- {runs} runs of each, taking turns; wall time of whole processes, in seconds\n"
    text += "- \"to SPIN\" is the least wall time of SPIN (joined, fitted) divided by the contestant's: above 1 is"
    text += " faster\n- bytes per state count the set of states, its table and the frontier (for SPIN: the stack), as the"
    text += " tool reports\n  them; MiB is what SPIN says it has allocated, and the peak of overtake's whole process\n\n"
    for size in sorted({r["N"] for r in rows}):
        text += f"## N = {size}\n\n" + one_size([r for r in rows if r["N"] == size])
        made = {kind: f"{took:.1f} s ({kind})" for (n, kind), took in prepared.items() if n == size}
        text += f"\nConverting, generating and compiling SPIN's verifier took {', '.join(made.values())}.\n\n"
    return text + acceptance(rows) + commands(rows)


def of(rows, contestant, size=None):
    return [r for r in rows if r["contestant"] == contestant and size in (None, r["N"])]


def one_size(rows):
    names = list(dict.fromkeys(r["contestant"] for r in rows))
    spin = best(of(rows, "SPIN, joined, fitted"))
    lines = []
    for name in names:
        own = of(rows, name)
        lines.append([name, count(own[0]["states"]), count(own[-1]["transitions"]), f"{own[0]['bytes_per_state']:.1f}",
                      seconds(best(own)), seconds(median(own)), seconds(best(own, "user_s")),
                      f"{max(r['memory_mib'] for r in own):.1f}", f"{spin / best(own):.2f}"])
    header = ["contestant", "states", "transitions", "bytes/state", "least", "median", "user", "MiB", "to SPIN"]
    return table(header, lines)


def acceptance(rows):
    """What is claimed about five processes, and whether it held in this run."""
    if not of(rows, "SPIN, joined, fitted", 5):
        return ""
    ours, two = of(rows, "overtake, 1 worker", 5), of(rows, "overtake, 2 workers", 5)
    fitted, defaults = of(rows, "SPIN, joined, fitted", 5), of(rows, "SPIN, joined, defaults", 5)
    literal = of(rows, "SPIN, literal, fitted", 5)
    states = f"{count(ours[0]['states'])} states stored, SPIN {count(fitted[0]['states'])} on the joined model"
    if literal:
        states += f" and {count(literal[0]['states'])} on the literal one"
    states += f" ({count(KNOWN_LITERAL_STATES)} is the figure known for a literal model)"
    fewer = ours[0]["states"] < fitted[0]["states"]

    def faster(own, spin, who):
        held = "held" if best(own) < best(spin) else "did not hold"
        return f"{held}: {seconds(best(own))} s against {seconds(best(spin))} s ({who})"

    lines = [
        f"fewer states than SPIN: {'held' if fewer else 'did not hold'}: {states}",
        "less time than SPIN, one worker: " + faster(ours, fitted, "joined, fitted"),
        "less time than SPIN, one worker: " + faster(ours, defaults, "joined, defaults"),
        "less time than SPIN, two workers: " + faster(two, fitted, "joined, fitted"),
    ]
    return "## What is claimed for N = 5\n\n" + "".join(f"- {line}\n" for line in lines) + "\n"


def commands(rows):
    largest = max(r["N"] for r in rows)
    shown = dict.fromkeys(r["command"] for r in rows if r["N"] == largest)
    convert = f"overtake convert {PROGRAM} -D N={largest} --to promela -o m.pml    (and with --literal)"
    lines = [convert, "spin -a m.pml", " ".join(GCC), *shown]
    return f"## Commands\n\nFor N = {largest}:\n\n" + "".join(f"    {line}\n" for line in lines)


if __name__ == "__main__":
    main()
