"""Running commands and writing down what they took: shared by the scripts in this folder."""

import csv
import datetime
import os
import platform
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
OVERTAKE = TARGET / "release" / "overtake"


def build():
    """The release binary of the sources as they are."""
    subprocess.run(["cargo", "build", "--release", "--quiet"], cwd=ROOT, check=True)


def run(command, cwd=ROOT, good=(0,)):
    """Runs a command to its end, with one of the good exit codes: its output, and the times of the whole process in
    seconds."""
    start = time.perf_counter()
    process = subprocess.Popen([str(c) for c in command], cwd=cwd, stdout=subprocess.PIPE, text=True)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in good:
        sys.exit(f"{' '.join(map(str, command))} ended with {process.returncode}:\n{output}")
    return output, {
        "wall_s": round(wall, 4),
        "user_s": round(usage.ru_utime, 4),
        "sys_s": round(usage.ru_stime, 4),
    }


def number(pattern, text):
    found = re.search(pattern, text)
    return float(found.group(1)) if found else None


def best(rows, column="wall_s"):
    return min(r[column] for r in rows)


def median(rows, column="wall_s"):
    return statistics.median(r[column] for r in rows)


def load():
    return " ".join(f"{x:.2f}" for x in os.getloadavg())


def cpu_model():
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor() or "unknown"
    found = re.search(r"model name\s*:\s*(.*)", text)
    return found.group(1) if found else platform.machine()


def first_line(*command):
    try:
        output = subprocess.run(command, capture_output=True, text=True)
        return (output.stdout or output.stderr).splitlines()[0]
    except (OSError, IndexError):
        return "not there"


def commit():
    def git(*arguments):
        return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True).stdout.strip()

    changed = " with changes" if git("status", "--porcelain", "--", "src", "Cargo.toml", "Cargo.lock") else ""
    return (git("rev-parse", "--short", "HEAD") or "unknown") + changed


def machine(load_before, *tools):
    """The circumstances, as a list in Markdown."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    lines = [
        f"- date: {datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d %H:%M} UTC, commit {commit()}",
        f"- machine: {os.cpu_count()} cores, {memory:.0f} GiB of memory, {cpu_model()}, {platform.system()}",
        f"- load averages (1, 5, 15 minutes): {load_before} before, {load()} after, which counts the runs themselves",
        "- tools: " + "; ".join(first_line(*t) for t in ((OVERTAKE, "--version"), *tools)),
    ]
    changed = [f"{k}={v}" for k, v in sorted(os.environ.items()) if k.startswith("CARGO_PROFILE_RELEASE_")]
    if changed:
        lines.append(f"- not the usual build: {', '.join(changed)}")
    return "\n".join(lines) + "\n"


def write_rows(name, rows):
    with open(ROOT / "results" / name, "w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def table(header, rows):
    """A table in Markdown; all columns but the first hold numbers."""
    lines = ["| " + " | ".join(header) + " |", "|---" + "|---:" * (len(header) - 1) + "|"]
    lines += ["| " + " | ".join(map(str, row)) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def seconds(value):
    return f"{value:.3f}"


def count(value):
    return f"{int(value):,}"
