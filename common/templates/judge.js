// Ask for judgements of pairs of questions, one pair at a time (task_3/judge.py).
// The browser keeps the judgements until they are saved as a CSV file. Nothing is sent anywhere.
"use strict";

const find = (id) => document.getElementById(id);
// pairs: the QuestionIds of the left and the right question of each pair. key: the name under which
// the browser keeps the judgements. origin: where the answers to the questions come from.
const settings = JSON.parse(find("settings").textContent);
const pairs = settings.pairs;
let state = readState();

// ---- What the browser keeps ----------------------------------------------------------------------

// Return the expert's name and the judgements of the first pairs: 1 for left, 2 for right.
function readState() {
  const nothing = { name: "", judgements: [] };
  try {
    return JSON.parse(localStorage.getItem(settings.key)) || nothing;
  } catch {
    // The browser keeps nothing for this page, or something else.
    return nothing;
  }
}

function keepState() {
  try {
    localStorage.setItem(settings.key, JSON.stringify(state));
    find("not-kept").hidden = true;
  } catch {
    find("not-kept").hidden = false;
  }
}

// ---- What the page shows -------------------------------------------------------------------------

function show() {
  const nJudged = state.judgements.length;
  const isDone = nJudged === pairs.length;
  find("progress").max = pairs.length;
  find("progress").value = nJudged;
  find("count").textContent = `${nJudged} of ${pairs.length} pairs judged`;
  find("undo").disabled = nJudged === 0;
  find("save").disabled = nJudged === 0;
  find("pair").hidden = isDone;
  find("done").hidden = !isDone;
  if (!isDone) {
    const [left, right] = pairs[nJudged];
    showQuestion("question-1", left);
    showQuestion("question-2", right);
  }
}

function showQuestion(place, questionId) {
  const card = find(`card-${questionId}`);
  find(place).replaceChildren(card.content.cloneNode(true));
}

// ---- What the expert does ------------------------------------------------------------------------

function judge(side) {
  if (state.judgements.length < pairs.length) {
    state.judgements.push(side);
    update();
  }
}

function undo() {
  state.judgements.pop();
  update();
}

// Forget the judgements, so that another expert can judge the same pairs in this browser.
function restart() {
  if (confirm("Have you saved the judgements? This browser forgets them now.")) {
    state = { name: "", judgements: [] };
    find("name").value = "";
    update();
  }
}

function update() {
  find("message").textContent = "";
  keepState();
  show();
}

// Give the browser a CSV file to download, if the name may be the name of a column.
function save() {
  const name = state.name.trim();
  // The evaluation reads columns with these names in another way.
  const isTaken = /^(left|right|Unnamed: \d+(\.\d+)*)$/.test(name);
  if (name === "" || isTaken) {
    const message = isTaken ? "Write another name: this one has a meaning." : "Write your name first.";
    find("message").textContent = message;
    find("name").focus();
    return;
  }
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([makeCsv(name)], { type: "text/csv" }));
  const simulated = settings.origin === "simulated" ? "simulated_" : "";
  link.download = `${simulated}judgements_${name.replace(/[^\p{L}\p{N}]+/gu, "_")}.csv`;
  link.click();
  find("message").textContent = `Saved as ${link.download}`;
}

// Return the panel: a row for each pair. The judgement is empty for pairs that are not judged yet.
function makeCsv(name) {
  const quotedName = `"${name.replaceAll('"', '""')}"`;
  const rows = pairs.map(([left, right], i) => `${left},${right},${state.judgements[i] ?? ""}`);
  return [`left,right,${quotedName}`, ...rows, ""].join("\n");
}

// Run what a key stands for. Keys with Alt or Control belong to the browser; a key that is held down
// counts once.
function pressKey(event) {
  const isTyping = event.target.tagName === "INPUT";
  if (isTyping || event.repeat || event.altKey || event.ctrlKey || event.metaKey) {
    return;
  }
  if (event.key === "ArrowLeft") {
    judge(1);
  } else if (event.key === "ArrowRight") {
    judge(2);
  } else if (event.key === "Backspace") {
    undo();
  } else {
    return;
  }
  event.preventDefault();
}

find("choose-1").addEventListener("click", () => judge(1));
find("choose-2").addEventListener("click", () => judge(2));
find("undo").addEventListener("click", undo);
find("save").addEventListener("click", save);
find("restart").addEventListener("click", restart);
find("name").value = state.name;
find("name").addEventListener("input", (event) => {
  state.name = event.target.value;
  keepState();
});
document.addEventListener("keydown", pressKey);
// Another tab with the same page has changed what the browser keeps.
window.addEventListener("storage", () => {
  state = readState();
  find("name").value = state.name;
  show();
});
show();
