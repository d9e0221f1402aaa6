// The table of all configurations: filtered and sorted as a whole, shown a page at a time.

const opForm = byId("op-filter");
const pageSize = 100;
const printed = 1000;
const table = {sort: "order", down: false, page: 0, open: new Set(), found: []};

const columns = [
  {name: "op", title: "op", of: item => text(item.row[row.op])},
  {name: "phase", title: "phase", of: item => phases.indexOf(text(item.row[row.phase]))},
  {name: "status", title: "status", of: item => item.verdict[0]},
  {name: "evidence", title: "evidence", of: item => text(item.verdict[1])},
  {name: "calls", title: "calls", number: true, of: item => item.row[row.calls]},
  {name: "time", title: "device time", number: true, of: item => item.row[row.device] ?? -1},
  {name: "inputs", title: "inputs", of: item => text(item.row[row.inputs])},
  {name: "place", title: "place", of: item => placeOf(item.row)},
];
const phases = ["forward", "loss", "backward", "optimizer"];

function placeOf(packed) {
  const first = packed[row.places][0];
  return first === undefined ? "" : text(data.places[first][0]);
}

const haystacks = new Map();
function haystack(packed) {
  let found = haystacks.get(packed);
  if (found === undefined) {
    const places = packed[row.places].map(place => data.places[place].map(text).join(" "));
    const parts = [row.op, row.via, row.inputs, row.rest].map(part => text(packed[part]));
    found = [...parts, ...places].join(" ").toLowerCase();
    haystacks.set(packed, found);
  }
  return found;
}

function chosen(name) {
  const value = opForm.elements[name].value;
  return value === "" ? "" : Number(value);
}

function search() {
  const {text: words, status, phase, evidence} = opForm.elements;
  const wanted = words.value.trim().toLowerCase();
  const [model, view] = [chosen("model"), chosen("view")];
  const found = [];
  data.models[model].rows.forEach((packed, place) => {
    const verdict = verdictOf(packed, view);
    if (verdict === null) return;
    if (status.value && data.statuses[verdict[0]] !== status.value) return;
    if (phase.value && text(packed[row.phase]) !== phase.value) return;
    if (evidence.value && (text(verdict[1]) || "none") !== evidence.value) return;
    if (wanted && !haystack(packed).includes(wanted)) return;
    found.push({row: packed, verdict, place});
  });
  table.found = sorted(found);
}

function sorted(found) {
  const column = columns.find(each => each.name === table.sort);
  if (!column) return found;
  const keyed = found.map(item => [column.of(item), item]);
  const sign = table.down ? -1 : 1;
  keyed.sort(([a], [b]) => sign * (a < b ? -1 : a > b ? 1 : 0));
  return keyed.map(([, item]) => item);
}

function update(page = 0) {
  search();
  table.page = page;
  draw();
}

function draw(all = false) {
  const pages = Math.max(Math.ceil(table.found.length / pageSize), 1);
  table.page = Math.min(Math.max(table.page, 0), pages - 1);
  const begin = all ? 0 : table.page * pageSize;
  const shown = table.found.slice(begin, all ? printed : begin + pageSize);
  const lines = shown.flatMap(item => table.open.has(item.row) ? [line(item), more(item)] : [line(item)]);
  byId("op-table").tBodies[0].replaceChildren(...lines);
  const total = data.models[chosen("model")].rows.length;
  const range = shown.length ? `, ${begin + 1} to ${begin + shown.length} shown` : "";
  byId("op-count").textContent = `${table.found.length.toLocaleString("en")} of ${many(total, "configuration")}${range}`;
  byId("op-page").textContent = `page ${table.page + 1} of ${pages}`;
  for (const button of byId("op-pages").querySelectorAll("button")) {
    const back = ["first", "previous"].includes(button.dataset.page);
    button.disabled = back ? table.page === 0 : table.page === pages - 1;
  }
}

function line(item) {
  const packed = item.row;
  const name = text(packed[row.op]);
  const open = element("button", element("code", name), {type: "button", "aria-expanded": table.open.has(packed)});
  open.addEventListener("click", () => toggle(item));
  const made = element("tr", [
    element("th", open, {scope: "row"}),
    element("td", text(packed[row.phase])),
    element("td", chip(data.statuses[item.verdict[0]])),
    element("td", text(item.verdict[1]) || "–"),
    element("td", packed[row.calls].toLocaleString("en"), {class: "number"}),
  ], {"data-row": item.place});
  if (hasTimes) made.append(element("td", packed[row.device] === null ? "" : duration(packed[row.device]), {class: "number"}));
  made.append(element("td", element("code", text(packed[row.inputs])), {class: "shape"}));
  made.append(element("td", element("code", placeOf(packed))));
  return made;
}

function toggle(item) {
  if (!table.open.delete(item.row)) table.open.add(item.row);
  draw();
  byId("op-table").querySelector(`tr[data-row="${item.place}"] button`).focus();
}

function more(item) {
  const packed = item.row;
  const parts = data.seen[packed[row.seen]].map(([view, number]) => verdictPart(data.views[view][0], data.verdicts[number]));
  const verdicts = element("ul", parts);
  const cell = element("td", verdicts, {colspan: byId("op-table").tHead.rows[0].cells.length});
  if (packed[row.via] && text(packed[row.via])) cell.append(element("p", ["dispatched for ", element("code", text(packed[row.via]))]));
  if (text(packed[row.rest])) cell.append(element("p", element("code", text(packed[row.rest]))));
  if (packed[row.notes].length) cell.append(element("ul", packed[row.notes].map(note => element("li", text(note)))));
  if (packed[row.places].length) {
    const places = packed[row.places].map(placePart);
    if (packed[row.hidden]) places.push(element("li", `${many(packed[row.hidden], "further line")} in the JSON report`));
    cell.append(element("h3", "Where"), element("ul", places));
  }
  return element("tr", cell, {class: "more"});
}

function verdictPart(label, [status, evidence, reason, fixed, links]) {
  const said = [`${label}: `, chip(data.statuses[status]), text(reason) && `, ${text(reason)}`];
  if (text(evidence)) said.push(element("span", ` (${text(evidence)})`, {class: "dim"}));
  if (text(fixed)) said.push(element("span", `, fixed in ${text(fixed)}`, {class: "fixed"}));
  for (const link of links) said.push(" ", element("a", text(link), {href: text(link), rel: "noreferrer noopener"}));
  return element("li", said);
}

function placePart(number) {
  const [place, code, module, library] = data.places[number].map(text);
  const said = [element("code", place, {class: "place"})];
  if (code) said.push(" ", element("code", code, {class: "code"}));
  if (module) said.push(element("span", [" in module ", element("code", module)], {class: "dim"}));
  if (library) said.push(element("span", [" through ", element("code", library)], {class: "dim"}));
  return element("li", said);
}

const hasTimes = data.models.some(model => model.rows.some(packed => packed[row.device] !== null));

function head() {
  const cells = columns.filter(column => hasTimes || column.name !== "time").map(column => {
    const arrow = element("span", "", {"aria-hidden": "true"});
    const button = element("button", [column.title, " ", arrow], {type: "button"});
    button.addEventListener("click", () => sortBy(column.name));
    return element("th", button, {scope: "col", "data-column": column.name, class: column.number ? "number" : ""});
  });
  byId("op-table").tHead.rows[0].replaceChildren(...cells);
}

function sortBy(name) {
  const numeric = columns.find(column => column.name === name).number ?? false;
  if (table.sort !== name) [table.sort, table.down] = [name, numeric];
  else if (table.down === numeric) table.down = !numeric;
  else [table.sort, table.down] = ["order", false];
  showSort();
  update();
}

function showSort() {
  for (const cell of byId("op-table").tHead.rows[0].cells) {
    const isSorted = cell.dataset.column === table.sort;
    if (isSorted) cell.setAttribute("aria-sort", table.down ? "descending" : "ascending");
    else cell.removeAttribute("aria-sort");
    cell.querySelector("span").textContent = isSorted ? (table.down ? "↓" : "↑") : "";
  }
}

function fillFilters() {
  data.models.forEach((model, number) => option(opForm.elements.model, number, model.name));
  data.views.forEach(([label], number) => option(opForm.elements.view, number, label));
  const verdicts = new Set(data.verdicts.map(verdict => data.statuses[verdict[0]]));
  for (const status of data.statuses.filter(each => verdicts.has(each))) option(opForm.elements.status, status, status);
  for (const phase of phases) option(opForm.elements.phase, phase, phase);
  for (const known of new Set(data.verdicts.map(verdict => text(verdict[1]) || "none"))) option(opForm.elements.evidence, known, known);
}

// Called from other parts of the page: only this op, or just this row.
function showOp(name) {
  opForm.reset();
  opForm.elements.text.value = name;
  const model = data.models.findIndex(each => each.rows.some(packed => text(packed[row.op]) === name));
  opForm.elements.model.value = Math.max(model, 0);
  update();
  byId("ops").scrollIntoView();
  opForm.elements.text.focus({preventScroll: true});
}

function showRow(model, packed) {
  opForm.reset();
  opForm.elements.model.value = model;
  [table.sort, table.down] = ["order", false];
  showSort();
  table.open.add(packed);
  search();
  const place = table.found.findIndex(item => item.row === packed);
  table.page = Math.floor(place / pageSize);
  draw();
  const line = byId("op-table").querySelector(`tr[data-row="${table.found[place].place}"]`);
  line.scrollIntoView({block: "center"});
  line.querySelector("button").focus({preventScroll: true});
}

if (data.models.length) {
  head();
  fillFilters();
  for (const id of ["op-filter", "op-scroll", "op-pages"]) byId(id).hidden = false;
  opForm.addEventListener("input", () => update());
  byId("op-reset").addEventListener("click", () => {
    opForm.reset();
    update();
  });
  opForm.addEventListener("submit", event => event.preventDefault());
  byId("op-pages").addEventListener("click", event => {
    const last = Math.ceil(table.found.length / pageSize) - 1;
    const pages = {first: 0, previous: table.page - 1, next: table.page + 1, last};
    if (event.target.dataset.page) [table.page] = [pages[event.target.dataset.page]];
    draw();
  });
  addEventListener("beforeprint", () => draw(true));
  addEventListener("afterprint", () => draw());
  for (const button of document.querySelectorAll("button[data-op]")) {
    button.hidden = false;
    button.addEventListener("click", () => showOp(button.dataset.op));
  }
  update();
}
