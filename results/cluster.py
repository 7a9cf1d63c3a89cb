#!/usr/bin/env python3
"""One search in several processes: what it takes, what is sent, and what that means for many machines.

All processes run on this machine, so with more of them than cores their times add up; what is compared is the processor
time of all together. A model with five constants, fitted to one and two processes, predicts three and four, which is
the check, and then 2 to 256 machines on networks of some kinds.

Writes cluster.csv (one row for each run) and cluster.md (the summary) beside itself.

    results/cluster.py [--runs 3]
"""

import argparse
import json
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import measure
from measure import OVERTAKE, best, count, median, seconds, table

# Programs and their sizes.
PROGRAMS = [("programs/burns/burns.tso", 7), ("programs/lamport/lamport2.tso", 5), ("programs/mcs/mcs.tso", 6)]
# The program of the claims, a limit of memory that one process does not keep and four do, and the claims themselves.
CLAIMED = PROGRAMS[0]
SMALL_MEMORY = "100MiB"
SHARE, SLOWER = 0.2, 1.5
# Networks: one-way latency in seconds, bytes per second and process.
NETWORKS = [("1 Gbit/s, 100 us", 1e-4, 1.18e8), ("10 Gbit/s, 50 us", 5e-5, 1.18e9), ("100 Gbit/s, 10 us", 1e-5, 1.18e10)]
MACHINES = [2, 4, 8, 16, 32, 64, 128, 256]
# Bytes that a process sends before it waits for the end of a round.
WINDOW = 1 << 20
# A batch that is sent when it is full.
BATCH = 64 << 10
# Steps from the first state to the last that is found, each of which may have to cross the network.
DEPTH = 200


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--runs", type=int, default=3)
    options = options.parse_args()
    subprocess.run(["cargo", "build", "--release", "--quiet", "--features", "distributed"], cwd=measure.ROOT, check=True)
    load_before = measure.load()
    rows = []
    for program in PROGRAMS:
        for turn in range(options.runs):
            rows.append({"run": turn + 1, **alone(program, 1)})
            rows.append({"run": turn + 1, **alone(program, 2)})
            rows.extend({"run": turn + 1, **together(program, processes)} for processes in (2, 3, 4))
        print(f"{program[0]} N = {program[1]} done", flush=True)
    limited = [within_memory(1), within_memory(4)]
    measure.write_rows("cluster.csv", rows)
    circumstances = measure.machine(load_before)
    (measure.ROOT / "results" / "cluster.md").write_text(summary(rows, limited, circumstances, options.runs))


def command(program, *more):
    file, size = program
    return ["check", "--json", file, "-D", f"N={size}", "--model", "sc", *more]


def spawn(arguments):
    line = [str(part) for part in [OVERTAKE, *arguments]]
    return subprocess.Popen(line, cwd=measure.ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ended(process):
    """What it said, and what it took."""
    said = process.stdout.read()
    process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return said, process.returncode, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def row(program, kind, processes, wall, ends):
    answer = json.loads(ends[0][0])
    return {
        "program": program[0].split("/")[-1].removesuffix(".tso"), "N": program[1], "kind": kind, "processes": processes,
        "verdict": answer["verdict"], "exit": ends[0][1], "states": answer["states"], "transitions": answer["transitions"],
        "wall_s": round(wall, 4), "cpu_s": round(sum(e[2] for e in ends), 4),
        "least_mib": round(min(e[3] for e in ends), 1), "most_mib": round(max(e[3] for e in ends), 1),
        "messages": answer.get("messages", 0), "sent_bytes": answer.get("sent_bytes", 0),
    }


def alone(program, workers):
    start = time.perf_counter()
    end = ended(spawn(command(program, "--threads", str(workers))))
    return row(program, f"{workers} workers" if workers > 1 else "1 worker", 1, time.perf_counter() - start, [end])


def together(program, processes, *more):
    with tempfile.TemporaryDirectory() as folder:
        hosts = Path(folder) / "hosts"
        free = [socket.create_server(("127.0.0.1", 0)) for _ in range(processes)]
        ports = [server.getsockname()[1] for server in free]
        hosts.write_text(f"token {secrets.token_hex(16)}\n" + "".join(f"127.0.0.1:{port}\n" for port in ports))
        for server in free:
            server.close()
        start = time.perf_counter()
        line = command(program, *more, "--hosts", hosts)
        ends = [ended(p) for p in [spawn([*line, "--process", str(k)]) for k in range(processes)]]
        return row(program, "processes", processes, time.perf_counter() - start, ends)


def within_memory(processes):
    limit = ["--memory", SMALL_MEMORY]
    if processes > 1:
        return together(CLAIMED, processes, *limit)
    start = time.perf_counter()
    end = ended(spawn(command(CLAIMED, *limit, "--threads", "1")))
    return row(CLAIMED, "1 worker", 1, time.perf_counter() - start, [end])


def pick(rows, program, kind, processes=1):
    name = program[0].split("/")[-1].removesuffix(".tso")
    return [r for r in rows if (r["program"], r["N"], r["kind"], r["processes"]) == (name, program[1], kind, processes)]


class Model:
    """What a search takes, by what one process and two have taken.

    Each state and transition costs processor time where it is expanded; each state that is sent costs some more, on both
    sides together, by its bytes. A state is sent for the share of transitions that leave the process, 1 - 1/P, less those
    that were sent a moment ago; what is left of them is taken from two processes."""

    def __init__(self, rows, program):
        one, two = pick(rows, program, "1 worker"), pick(rows, program, "processes", 2)
        self.states, self.transitions = one[0]["states"], one[0]["transitions"]
        self.work = best(one, "cpu_s")
        self.sent_per_crossing = median(two, "sent_bytes") / (self.transitions / 2)
        self.per_byte = max(best(two, "cpu_s") - self.work, 0) / median(two, "sent_bytes")
        self.base = 8.0
        self.per_state = (median(one, "most_mib") - self.base) * 2**20 / self.states
        extra = median(two, "most_mib") - self.base - self.per_state * self.states / 2 / 2**20
        self.per_peer = max(extra, 0)

    def sent(self, processes):
        return self.transitions * (1 - 1 / processes) * self.sent_per_crossing

    def cpu(self, processes):
        return self.work + self.per_byte * self.sent(processes)

    def time(self, processes, latency, bandwidth, scale=1):
        """Seconds with a core for each process; of a search that is so many times as large."""
        sent = scale * self.sent(processes) / processes
        computing = scale * self.cpu(processes) / processes
        # A window of words is under way at a time, and a round ends after a message and its answer.
        return max(computing, sent / bandwidth, sent / WINDOW * 2 * latency) + DEPTH * latency

    def memory(self, processes, scale=1):
        """Bytes of one process: states, a batch for each other, and what it takes anyway."""
        buffers = (processes - 1) * (BATCH * 4) + self.per_peer * 2**20
        return self.base * 2**20 + scale * self.states / processes * self.per_state + buffers


def summary(rows, limited, circumstances, runs):
    text = "# One search in several processes\n\n"
    text += "Written by `results/cluster.py`; every run is a row of [cluster.csv](cluster.csv).\n\n" + circumstances
    text += f"- {runs} runs of each, taking turns, all on one machine and over loopback\n"
    text += "- memory: peak of a process, the smallest and the largest of them\n"
    text += "- sent: states, statuses and rounds, by all processes together, without the headers of timely and TCP\n\n"
    lines = []
    for program in PROGRAMS:
        kinds = [("1 worker", 1), ("2 workers", 1), ("processes", 2), ("processes", 3), ("processes", 4)]
        for kind, processes in kinds:
            own = pick(rows, program, kind, processes)
            name = f"{own[0]['program']}, N = {own[0]['N']}, " + (f"{processes} processes" if processes > 1 else kind)
            sent = median(own, "sent_bytes")
            per_second = median(own, "messages") / best(own)
            lines.append([name, count(own[0]["states"]), seconds(best(own)), seconds(best(own, "cpu_s")),
                          f"{min(r['least_mib'] for r in own):.0f}–{max(r['most_mib'] for r in own):.0f}",
                          f"{sent / own[0]['transitions']:.2f}", f"{per_second:,.0f}"])
    text += table(["search under SC", "states", "least wall s", "least CPU s", "MiB", "bytes per transition",
                   "messages per s"], lines)
    return text + claims(rows, limited) + check(rows) + plan(rows) + LIMITS


def claims(rows, limited):
    two_workers, two = pick(rows, CLAIMED, "2 workers"), pick(rows, CLAIMED, "processes", 2)
    slower = best(two) / best(two_workers)
    text = f"\nClaimed: on {two[0]['program']} with N = {CLAIMED[1]}, two processes take at most {SLOWER} times as long as two workers in"
    text += f" one. {held(slower <= SLOWER)}: {slower:.2f}.\n"
    spread = max(max(r["most_mib"] / r["least_mib"] for r in pick(rows, CLAIMED, "processes", p)) for p in (2, 3, 4))
    text += f"\nClaimed: the shares of the memory differ by at most {SHARE:.0%}. {held(spread <= 1 + SHARE)}: {spread - 1:.1%}.\n"
    words = [f"{r['processes']} with `--memory {SMALL_MEMORY}` each: `{r['verdict']}`, exit code {r['exit']}" for r in limited]
    return text + f"\nThe same search in {words[0]}; in {words[1]}.\n"


def held(is_so):
    return "Held" if is_so else "Did not hold"


def check(rows):
    text = "\n## The model beside the runs\n\n"
    text += "Constants of the model come from one and two processes; three and four are predictions.\n\n"
    lines = []
    for program in PROGRAMS:
        model = Model(rows, program)
        for processes in (3, 4):
            own = pick(rows, program, "processes", processes)
            name = f"{own[0]['program']}, {processes} processes"
            lines.append([name, f"{model.cpu(processes):.2f}", f"{best(own, 'cpu_s'):.2f}",
                          f"{model.sent(processes) / 2**20:.0f}", f"{median(own, 'sent_bytes') / 2**20:.0f}",
                          f"{model.memory(processes) / 2**20:.0f}", f"{median(own, 'most_mib'):.0f}"])
    header = ["", "CPU s, model", "measured", "MiB sent, model", "measured", "MiB of a process, model", "measured"]
    text += table(header, lines)
    text += "\nThe model is low where more processes find fewer of the states that they have just sent, and where a table of states\n"
    text += "has just been doubled: it takes both as they are in two processes and in one.\n"
    return text


def plan(rows):
    model = Model(rows, CLAIMED)
    scale = 1000
    text = f"\n## Many machines\n\nA search {scale} times the size of {CLAIMED[0].split('/')[-1]} with N = {CLAIMED[1]}: "
    text += f"{scale * model.states / 1e9:.1f} thousand million states, {scale * model.transitions / 1e9:.0f} of transitions,"
    text += f" in one process {model.memory(1, scale) / 2**30:.0f} GiB and {model.time(1, 0, 1e12, scale) / 3600:.1f} hours."
    text += " One process for each machine; hours, and the gain over one process.\n\n"
    lines = []
    for machines in MACHINES:
        hours = [model.time(machines, latency, bandwidth, scale) / 3600 for _, latency, bandwidth in NETWORKS]
        gains = [model.time(1, 0, 1e12, scale) / 3600 / h for h in hours]
        memory = model.memory(machines, scale) / 2**30
        lines.append([machines, f"{memory:.1f}", *(f"{h:.2f} ({g:.1f})" for h, g in zip(hours, gains))])
    text += table(["machines", "GiB each", *(name for name, _, _ in NETWORKS)], lines)
    small = [f"{m}: {model.time(1, 0, 1e12) / model.time(m, *NETWORKS[0][1:]):.1f}" for m in MACHINES]
    text += f"\nThe search itself, as it is, gains on the first of these networks, by machines: {', '.join(small)}.\n"
    return text


LIMITS = """
## Where it stops

- *Bytes on the wire.* Nearly every transition leaves the process once there are many. With one worker per machine, 1 Gbit/s
  carries what a core finds; with all cores of a large machine it does not, and then states should be sent as differences
  from their parents, or an owner chosen by a part of the state that most steps leave alone, so that successors stay.
- *Narrow searches.* A step to another process takes a latency, and a search of depth D at least D of them. Searches that
  have few states at each depth are not worth sharing; `--share-after` keeps the short ones out.
- *Connections.* Every two processes have two, and timely two threads for one of them: 256 processes on 256 machines have
  510 threads each. Beyond that, machines should have one process with several workers, and batches be routed in two hops.
- *Batches.* One for each other process, sent when it is full or when a round ends. With 256 processes a round of a thousand
  tasks leaves most of them nearly empty; rounds should then grow with the number of processes.
- *Offsets.* A process numbers its states with 33 bits, 8 bytes apart: 64 GiB of states each, and 16 TiB in 256.
  What the table above has beyond that would end at a limit.
- *One process lost, all lost.* Hours of work are gone with one machine. States that are written down at the end of a round,
  every few minutes, would let the others begin again from there.
"""


if __name__ == "__main__":
    sys.exit(main())
