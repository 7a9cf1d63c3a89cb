"use strict";
const $ = (id) => document.getElementById(id);
const made = (name, text, cls) => {
  const e = document.createElement(name);
  if (text !== undefined) e.textContent = text;
  if (cls) e.className = cls;
  return e;
};
let model = "", run = [], undone = [], asked = 0, shown = null;

async function ask(question) {
  const reply = await fetch(question, {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ model, run }),
  });
  if (!reply.ok) throw new Error(`overtake does not answer: ${reply.status}`);
  return reply.json();
}
function say(words, tone) {
  $("said").textContent = words || "";
  $("said").className = tone || "";
}
async function show() {
  const mine = ++asked;
  let view;
  try { view = await ask("state"); } catch (e) { view = { wrong: String(e.message || e) }; }
  if (mine !== asked) return;
  shown = view;
  history.replaceState(null, "", `#m=${model}&r=${run.join(",")}`);
  $("wrong").hidden = !view.wrong;
  $("wrong").textContent = view.wrong || "";
  document.body.dataset.steps = run.length;
  document.body.dataset.ready = mine;
  $("undo").disabled = !run.length;
  $("redo").disabled = !undone.length;
  if (view.wrong) { $("threads").replaceChildren(); $("picture").replaceChildren(); $("memory").replaceChildren(); return; }
  if (!model) model = view.models[0];
  document.querySelector(".models").replaceChildren(...view.models.map((name) => {
    const b = made("button", name.toUpperCase());
    b.dataset.model = name;
    b.setAttribute("aria-pressed", name === model);
    b.onclick = () => { if (model !== name) { model = name; run = []; undone = []; say(""); show(); } };
    return b;
  }));
  $("against").hidden = !view.against;
  $("against").textContent = view.against || "";
  $("lock").textContent = view.lock ? `memory is held by ${view.lock}` : "";
  $("memory").replaceChildren(...view.memory.map(([name, value]) => {
    const row = made("tr");
    row.append(made("th", name), made("td", value));
    return row;
  }));
  $("threads").replaceChildren(...view.threads.map((t, k) => thread(t, k, view)));
  for (const box of document.querySelectorAll(".one .code")) {
    const at = box.querySelector(".now");
    if (at) box.scrollTop = at.offsetTop - box.clientHeight / 2;
  }
  // The picture is ours: names and instructions in it are escaped where it is made.
  $("picture").innerHTML = view.picture;
  $("picture").hidden = !run.length;
  for (const box of $("picture").querySelectorAll(".k")) box.onclick = () => jump(+box.dataset.k + 1);
}
function thread(t, k, view) {
  const one = made("div", undefined, "one"), head = made("h3", t.name);
  one.dataset.thread = t.name;
  head.append(made("small", t.trapped ? "went wrong" : t.ended ? "ended" : `at ${t.at}`));
  one.append(head);
  if (view.text.length && t.from) {
    const code = made("div", undefined, "code");
    for (let l = t.from; l <= t.to; l++) {
      const line = made("div", undefined, t.next.includes(l) ? "line now" : "line");
      line.append(made("span", view.text[l - 1][0], "n"), made("code", view.text[l - 1][1]));
      code.append(line);
    }
    one.append(code);
  }
  const queue = made("div", undefined, "queue");
  queue.title = "What waits in the buffer, the oldest on the right";
  queue.append(...t.buffer.toReversed().map(([cell, value]) => made("span", `${cell}=${value}`, "chip")));
  one.append(queue);
  if (t.registers.length) {
    const list = made("dl", undefined, "registers");
    for (const [name, value] of t.registers) {
      const entry = made("div");
      entry.append(made("dt", name), made("dd", value));
      list.append(entry);
    }
    one.append(list);
  }
  const offers = made("div", undefined, "offers");
  for (const offer of view.offers.filter((o) => o.thread === k)) {
    const b = made("button", undefined, offer.kind);
    b.dataset.key = offer.key;
    b.append(made("span", offer.text), made("small", offer.effect));
    b.onclick = () => { run.push(offer.key); undone = []; say(""); show(); };
    offers.append(b);
  }
  one.append(offers);
  return one;
}
function jump(to) {
  const whole = [...run, ...undone.toReversed()];
  run = whole.slice(0, to);
  undone = whole.slice(to).toReversed();
  say("");
  return show();
}
$("undo").onclick = () => run.length && jump(run.length - 1);
$("redo").onclick = () => undone.length && jump(run.length + 1);
$("restart").onclick = () => { run = []; undone = []; say(""); show(); };
async function question(name, waiting, then) {
  say(waiting);
  try {
    const told = await ask(name);
    if (told.wrong) { say(told.wrong); } else { then(told); }
  } catch (e) { say(String(e.message || e)); }
}
$("bug").onclick = () => question("bug", "Looking for a run …", async (told) => {
  if (told.run) { run = told.run; undone = []; await show(); }
  say(told.words);
});
$("still").onclick = () => question("still", "Looking at all that can follow …", (told) => {
  if (told.run) undone = told.run.toReversed();
  $("redo").disabled = !undone.length;
  say(told.words + (told.run && told.run.length ? " Redo goes there." : ""), told.answer);
});
function save(name, type, text) {
  const a = made("a");
  a.href = URL.createObjectURL(new Blob([text], { type }));
  a.download = name;
  a.click();
  setTimeout(() => URL.revokeObjectURL(a.href), 1000);
}
$("page").onclick = () => question("page", "", (told) => { save("run.html", "text/html", told.html); say("Saved."); });
$("json").onclick = () => question("json", "", (told) => {
  save("run.json", "application/json", JSON.stringify(told) + "\n");
  say("Saved: overtake replay FILE run.json checks it again.");
});
$("link").onclick = async () => {
  try { await navigator.clipboard.writeText(location.href); say("Copied: it works as long as this explorer runs."); }
  catch { say(location.href); }
};
addEventListener("keydown", (e) => {
  if (e.altKey || e.ctrlKey || e.metaKey) return;
  if (e.key === "ArrowLeft") $("undo").click(); else if (e.key === "ArrowRight") $("redo").click(); else return;
  e.preventDefault();
});
function begin() {
  const given = new URLSearchParams(location.hash.slice(1));
  model = given.get("m") || "";
  run = (given.get("r") || "").split(",").filter(Boolean);
  undone = [];
  show();
}
addEventListener("hashchange", begin);
begin();
