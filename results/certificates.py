#!/usr/bin/env python3
"""What do certificates cost: how long does it take to find an answer, to write its certificate, and to verify that?

Every bundled program, with all definitions for which its folder has an expected verdict: `check` and `robust`, without and
with `--certificate`, and `verify`.

Writes certificates.csv (one row for each question) and certificates.md (the summary) beside itself.

    results/certificates.py [--runs 3] [--timeout 30s]
"""

import argparse
import json
import re
import tempfile
from pathlib import Path

import measure
from measure import OVERTAKE, best, count, run, seconds, table

COMMANDS = ["check", "robust"]
ENTRY = re.compile(r'\(file: "([^"]+)"(?:, define: \{([^}]*)\})?')
SHOWN = 15


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--runs", type=int, default=3)
    options.add_argument("--timeout", default="30s")
    options = options.parse_args()
    measure.build()
    load_before = measure.load()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for program, parameters in sorted(questions()):
            rows += [once(program, parameters, command, Path(folder) / "c", options) for command in COMMANDS]
            print(program, parameters, flush=True)
    measure.write_rows("certificates.csv", rows)
    text = summary(rows, measure.machine(load_before), options)
    (measure.ROOT / "results" / "certificates.md").write_text(text)


def questions():
    found = set()
    for file in (measure.ROOT / "programs").glob("*/expected.ron"):
        for name, define in ENTRY.findall(file.read_text()):
            parameters = " ".join("=".join(d) for d in re.findall(r'"(\w+)": (-?\d+)', define))
            found.add((f"{file.parent.name}/{name}", parameters))
    return found


def once(program, parameters, command, certificate, options):
    flags = [part for p in parameters.split() for part in ("-D", p)]
    path, limit = f"programs/{program}", ["--json", "--timeout", options.timeout]
    ask = [OVERTAKE, command, *limit, "--threads", 1, path, *flags]
    verify = [OVERTAKE, "verify", *limit, path, certificate, *flags]
    found, written, verified = [], [], []
    certificate.unlink(missing_ok=True)
    for _ in range(options.runs):
        found.append(cpu(run(ask, good=(0, 5, 10))[1]))
        output, took = run([*ask, "--certificate", certificate], good=(0, 5, 10))
        written.append(cpu(took))
        answer = json.loads(output)
        if answer["certified"]:
            verified.append(cpu(run(verify)[1]))
    return {
        "program": program,
        "parameters": parameters,
        "command": command,
        "verdict": answer["verdict"],
        "engine": answer.get("engine", ""),
        "certified": answer["certified"],
        "reason": answer.get("certificate_reason", ""),
        "bytes": answer.get("certificate_bytes", ""),
        "find_s": best(found, "s"),
        "find_and_write_s": best(written, "s"),
        "verify_s": best(verified, "s") if verified else "",
    }


def cpu(took):
    return {"s": round(took["user_s"] + took["sys_s"], 4)}


def summary(rows, circumstances, options):
    text = "# Certificates\n\n"
    text += "Written by `results/certificates.py`; every question is a row of [certificates.csv](certificates.csv).\n\n"
    text += circumstances + f"- the least of {options.runs} runs, with a limit of {options.timeout} and one worker; processor"
    text += " time of whole processes, in seconds\n- with its certificate, an answer is judged once before it is written\n"
    text += "\n## All together\n\n"
    text += table(["answer", "questions", "certified", "find", "find and write", "verify"], totals(rows))
    text += f"\n## The {SHOWN} that take longest to verify\n\n"
    certified = sorted((r for r in rows if r["certified"]), key=lambda r: -r["verify_s"])
    header = ["program", "command", "verdict", "engine", "bytes", "find", "find and write", "verify"]
    lines = [[name(r), f"`{r['command']}`", r["verdict"], r["engine"], count(r["bytes"]), seconds(r["find_s"]),
              seconds(r["find_and_write_s"]), seconds(r["verify_s"])] for r in certified[:SHOWN]]
    text += table(header, lines)
    left = [r for r in rows if not r["certified"]]
    lines = [[name(r), f"`{r['command']}`", r["verdict"], r["reason"]] for r in left]
    text += "\n## Not certified\n\n"
    return text + (table(["program", "command", "verdict", "reason"], lines) if left else "Everything is.\n")


def totals(rows):
    verdicts = sorted({r["verdict"] for r in rows})
    lines = [total(v, [r for r in rows if r["verdict"] == v]) for v in verdicts]
    return [*lines, total("all", rows)]


def total(what, rows):
    certified = [r for r in rows if r["certified"]]
    times = [seconds(sum(r[column] for r in certified)) for column in ("find_s", "find_and_write_s", "verify_s")]
    return [what, len(rows), len(certified), *times]


def name(row):
    return " ".join(filter(None, (row["program"], row["parameters"])))


if __name__ == "__main__":
    main()
