"use strict";
// What all parts of the page share. Texts of the report are only ever set as text, never as markup.

const data = JSON.parse(document.getElementById("data").textContent);
const text = number => data.texts[number];
const byId = id => document.getElementById(id);
const fine = new Set(["native", "composite", "skipped"]);

function element(name, content = "", attributes = {}) {
  const made = document.createElement(name);
  made.append(...[content].flat().filter(part => part !== ""));
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

function option(select, value, label) {
  select.append(element("option", label, {value}));
}

function chip(status) {
  const sign = element("span", data.signs[status], {class: "sign", "aria-hidden": "true"});
  return element("span", [sign, status], {class: `chip s-${status}`});
}

function many(number, noun) {
  return `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
}

function duration(seconds) {
  const [factor, unit] = seconds >= 1 ? [1, "s"] : seconds >= 1e-3 ? [1e3, "ms"] : [1e6, "µs"];
  return `${(seconds * factor).toPrecision(3)} ${unit}`;
}

const row = {op: 0, via: 1, phase: 2, calls: 3, inputs: 4, rest: 5, seen: 6, places: 7, hidden: 8,
  device: 9, cpu: 10, notes: 11};

// The verdict of one view, or of the worst one; null where the row is not dispatched.
function verdictOf(packed, view) {
  let worst = null;
  for (const [which, number] of data.seen[packed[row.seen]]) {
    const verdict = data.verdicts[number];
    if (view !== "" && which !== view) continue;
    if (worst === null || verdict[0] < worst[0]) worst = verdict;
  }
  return worst;
}

// Theme: as the system says, until the reader chooses.
const media = {system: byId("dark").media, light: "not all", dark: "screen"};
const themes = Object.keys(media);
const redraws = [];

function setTheme(theme) {
  byId("dark").media = media[theme];
  byId("theme").textContent = `Theme: ${theme}`;
  for (const redraw of redraws) redraw();
}

function stored(theme) {
  try {
    if (theme === undefined) return localStorage.getItem("opscan-theme");
    localStorage.setItem("opscan-theme", theme);
  } catch {
    // A page opened from a file may have no storage; the choice then lasts as long as the page.
  }
  return null;
}

let theme = themes.includes(stored()) ? stored() : "system";
byId("theme").hidden = false;
byId("theme").addEventListener("click", () => {
  theme = themes[(themes.indexOf(theme) + 1) % themes.length];
  stored(theme);
  setTheme(theme);
});
setTheme(theme);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => setTheme(theme));

// Paper is white and has no way to unfold.
addEventListener("afterprint", () => setTheme(theme));
addEventListener("beforeprint", () => {
  setTheme("light");
  for (const folded of document.querySelectorAll("details.more, details.how, figure details")) folded.open = true;
});
