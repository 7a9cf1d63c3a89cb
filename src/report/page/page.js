"use strict";
document.documentElement.classList.add("js");
const lines = (root, l) => root.closest("section").querySelectorAll(`.program .line[data-l="${l}"]`);
let current = null;

class Run {
  constructor(figure) {
    this.figure = figure;
    this.data = JSON.parse(figure.querySelector("script.steps").textContent);
    this.slider = figure.querySelector("input");
    this.marks = [];
    this.boxes = [...figure.querySelectorAll(".k")];
    for (const box of this.boxes) box.addEventListener("click", () => this.go(+box.dataset.k + 1));
    this.slider.addEventListener("input", () => this.go(+this.slider.value));
    for (const button of figure.querySelectorAll("[data-go]"))
      button.addEventListener("click", () => this.move(button.dataset.go));
    figure.addEventListener("pointerdown", () => (current = this));
    this.saved = [this.start()];
    this.go(this.data.steps.length, true);
  }
  start() {
    const d = this.data;
    return {
      memory: [...d.initial], next: [...d.starts],
      registers: d.registers.map((names) => names.map(() => 0)), buffers: d.threads.map(() => []),
    };
  }
  // The state after so many steps, from the nearest one that is kept.
  state(at) {
    const every = 500, base = Math.min(Math.floor(at / every), this.saved.length - 1);
    const s = structuredClone(this.saved[base]);
    for (let k = base * every; k < at; k++) {
      const [t, , next, memory, registers, leaves, enters] = this.data.steps[k];
      for (let i = 0; memory && i < memory.length; i += 2) s.memory[memory[i]] = memory[i + 1];
      for (let i = 0; registers && i < registers.length; i += 2) s.registers[t][registers[i]] = registers[i + 1];
      for (const place of leaves || []) s.buffers[t].splice(place, 1);
      for (let i = 0; enters && i < enters.length; i += 2) s.buffers[t].push([enters[i], enters[i + 1]]);
      s.next[t] = next;
      if ((k + 1) % every === 0 && this.saved.length === (k + 1) / every) this.saved.push(structuredClone(s));
    }
    return s;
  }
  move(where) {
    const last = this.data.steps.length;
    this.go({ first: 0, back: this.at - 1, on: this.at + 1, last }[where]);
  }
  go(at, quiet) {
    const d = this.data, count = d.steps.length;
    at = Math.max(0, Math.min(count, at));
    this.at = at;
    if (!quiet) current = this;
    const s = this.state(at), [t, line, , memory, registers] = at ? d.steps[at - 1] : [-1, 0];
    this.slider.value = at;
    this.figure.dataset.at = at;
    this.figure.querySelector(".where").textContent = at ? `after row ${at} of ${count}` : "at the beginning";
    const changed = new Set((memory || []).filter((_, i) => i % 2 === 0));
    this.figure.querySelectorAll(".memory tr").forEach((row, i) => {
      row.lastElementChild.textContent = s.memory[d.shown[i]];
      row.classList.toggle("new", changed.has(d.shown[i]));
    });
    this.figure.querySelectorAll(".thread").forEach((box, i) => {
      const queue = box.querySelector(".queue");
      queue.replaceChildren(...s.buffers[i].toReversed().map(([cell, value]) => {
        const chip = document.createElement("span");
        chip.className = "chip";
        chip.textContent = `${d.cells[cell]}=${value}`;
        return chip;
      }));
      const set = i === t ? (registers || []).filter((_, k) => k % 2 === 0) : [];
      box.querySelectorAll(".registers div").forEach((entry, r) => {
        entry.lastElementChild.textContent = s.registers[i][r];
        entry.classList.toggle("new", set.includes(r));
      });
    });
    this.light(at, line, s.next, quiet);
  }
  light(at, line, next, quiet) {
    let here = null;
    for (const box of this.boxes) {
      const k = +box.dataset.k;
      box.classList.toggle("todo", k >= at);
      box.classList.remove("at");
      if (k < at) here = box;
    }
    if (at && here) here.classList.add("at");
    for (const mark of this.marks) mark.classList.remove("now", "at");
    this.marks = [];
    if (quiet) return;
    for (const l of next) for (const e of l ? lines(this.figure, l) : []) e.classList.add("at"), this.marks.push(e);
    for (const e of line ? lines(this.figure, line) : []) {
      e.classList.add("now");
      this.marks.push(e);
      const box = e.closest(".code");
      if (box.scrollHeight > box.clientHeight) box.scrollTop = e.offsetTop - box.offsetTop - box.clientHeight / 2;
    }
    const told = this.figure.querySelector("p.now");
    told.textContent = here && at ? [...here.querySelectorAll("text")].map((x) => x.lastChild.textContent).slice(1).join("   ") : "";
    if (!here || !at) return;
    const piece = here.closest("details.piece");
    if (piece) piece.open = true;
    const box = here.getBoundingClientRect();
    if (box.top < 60 || box.bottom > innerHeight - 20) here.scrollIntoView({ block: "center", inline: "nearest" });
  }
}

const runs = new Map();
for (const figure of document.querySelectorAll("figure.run")) runs.set(figure.id, new Run(figure));
current = runs.values().next().value || null;
addEventListener("keydown", (e) => {
  if (!current || e.altKey || e.ctrlKey || e.metaKey || /^(TEXTAREA|SELECT)$/.test(e.target.tagName)) return;
  const where = { ArrowRight: "on", ArrowDown: "on", ArrowLeft: "back", ArrowUp: "back", Home: "first", End: "last" }[e.key];
  if (!where) return;
  e.preventDefault();
  current.move(where);
});
// Pointing at a node of a cycle lights its rows and lines.
for (const node of document.querySelectorAll(".cycle .node")) {
  const run = runs.get(node.closest(".cycle").dataset.run);
  const rows = node.dataset.rows.split(" ").map(Number);
  const light = (on) => {
    if (!run) return;
    for (const k of rows) {
      for (const box of run.figure.querySelectorAll(`.k[data-k="${k}"]`)) box.classList.toggle("lit", on);
      for (const line of lines(run.figure, run.data.steps[k][1])) line.classList.toggle("lit", on);
    }
  };
  for (const [name, on] of [["pointerenter", 1], ["focus", 1], ["pointerleave", 0], ["blur", 0]])
    node.addEventListener(name, () => light(!!on));
  node.addEventListener("click", () => run && run.go(rows[0] + 1));
}
// Tables sort by the column whose head is clicked.
for (const head of document.querySelectorAll("th[data-sort]"))
  head.addEventListener("click", () => {
    const body = head.closest("table").tBodies[0], k = head.cellIndex, up = head.dataset.sort !== "up";
    const key = (row) => row.cells[k].dataset.v ?? row.cells[k].textContent;
    const order = (a, b) => {
      const [x, y] = [key(a), key(b)], n = Number(x) - Number(y);
      return x === "" ? 1 : y === "" ? -1 : Number.isNaN(n) ? x.localeCompare(y) : n;
    };
    body.append(...[...body.rows].sort((a, b) => (up ? order(a, b) : order(b, a))));
    for (const other of head.parentNode.cells) other.dataset.sort = "";
    head.dataset.sort = up ? "up" : "down";
  });
