// The step as lanes, one for each device: a canvas that a slider moves over. Zoomed out, a pixel
// shows the worst status of the calls under it.

const walk = {model: 0, view: 0, calls: [], lanes: [], statuses: [], phases: [], from: 0, to: 0, at: 0};
const walkForm = byId("walk-form");
const canvas = byId("walk-canvas");
const slider = byId("walk-slider");
const laneHeight = 26;
const laneGap = 8;
const bandHeight = 20;
const fewest = 12;

function loadWalk() {
  const model = data.models[walk.model];
  const order = model.orderOf[walk.view];
  walk.isOrdered = order >= 0;
  const verdicts = model.rows.map(packed => verdictOf(packed, walk.view));
  walk.calls = walk.isOrdered ? model.orders[order] : firstExecuted(model.rows, verdicts);
  const isDevice = data.views[walk.view][1];
  walk.statuses = walk.calls.map(call => verdicts[call][0]);
  walk.lanes = walk.statuses.map(status => laneOf(status, isDevice));
  walk.phases = stretches(walk.calls.map(call => text(model.rows[call][row.phase])));
  walk.used = data.lanes.map((_, lane) => lane).filter(lane => lane < 2 || walk.lanes.includes(lane));
  [walk.from, walk.to, walk.at] = [0, walk.calls.length, 0];
  byId("walk-note").textContent = walk.isOrdered ? inOrder() :
    "This report has no order of execution: each configuration stands with all its calls, in the order in which it was first executed. Switches cannot be counted.";
}

function firstExecuted(rows, verdicts) {
  return rows.flatMap((packed, place) => verdicts[place] ? Array(packed[row.calls]).fill(place) : []);
}

function laneOf(status, isDevice) {
  const skipped = data.statuses[status] === "skipped";
  return isDevice && skipped ? data.lanes.findIndex(([name]) => name === "unknown") : data.laneOf[status];
}

function inOrder() {
  const moving = walk.lanes.filter(lane => lane < 2);
  const switches = moving.filter((lane, place) => place > 0 && lane !== moving[place - 1]).length;
  const fallbacks = walk.lanes.filter(lane => lane === 1).length;
  return `${many(walk.calls.length, "call")} in order of execution, ${many(fallbacks, "fallback")} to the CPU, ` +
    `${switches.toLocaleString("en")} switch${switches === 1 ? "" : "es"} between GPU and CPU`;
}

function stretches(names) {
  const found = [];
  names.forEach((name, place) => {
    if (found.length && found.at(-1).name === name) found.at(-1).to = place + 1;
    else found.push({name, from: place, to: place + 1});
  });
  return found;
}

function moveTo(call) {
  walk.at = Math.min(Math.max(call, 0), walk.calls.length - 1);
  const span = walk.to - walk.from;
  if (walk.at < walk.from || walk.at >= walk.to) lookAt(walk.at - span / 2, span);
  showCall();
  drawWalk();
}

function lookAt(from, span) {
  const all = walk.calls.length;
  const kept = Math.min(Math.max(span, Math.min(fewest, all)), all);
  walk.from = Math.min(Math.max(from, 0), all - kept);
  walk.to = walk.from + kept;
}

function zoom(factor, around = walk.at + .5) {
  const share = (around - walk.from) / (walk.to - walk.from);
  const inside = share >= 0 && share <= 1 ? share : .5;
  const span = (walk.to - walk.from) * factor;
  lookAt(around - inside * span, span);
  drawWalk();
}

function toProblem(direction) {
  for (let call = walk.at + direction; call >= 0 && call < walk.calls.length; call += direction) {
    if (fine.has(data.statuses[walk.statuses[call]])) continue;
    moveTo(call);
    return;
  }
  byId("walk-call").append(element("p", `no ${direction > 0 ? "later" : "earlier"} problem`, {class: "dim"}));
}

function showCall() {
  const packed = data.models[walk.model].rows[walk.calls[walk.at]];
  const verdict = verdictOf(packed, walk.view);
  const [status, lane] = [data.statuses[verdict[0]], data.lanes[walk.lanes[walk.at]][1]];
  const name = text(packed[row.op]);
  const where = `call ${(walk.at + 1).toLocaleString("en")} of ${walk.calls.length.toLocaleString("en")}`;
  const show = element("button", "Show in the table", {type: "button", class: "plain"});
  show.addEventListener("click", () => showRow(walk.model, packed));
  byId("walk-call").replaceChildren(
    element("p", [`${where}, ${text(packed[row.phase])}: `, element("code", name, {class: "place"}), " ", element("code", text(packed[row.inputs])), " ", chip(status), `, ${lane} `, show]),
    element("p", [element("code", placeOf(packed)), fine.has(status) ? "" : ` ${text(verdict[2])}`], {class: "dim"}),
  );
  slider.setAttribute("aria-valuenow", walk.at + 1);
  slider.setAttribute("aria-valuetext", `${where}: ${name}, ${text(packed[row.phase])}, ${status}, ${lane}`);
}

const steps = {
  in: () => zoom(.5),
  out: () => zoom(2),
  fit: () => zoom(Infinity),
  next: () => toProblem(1),
  previous: () => toProblem(-1),
};
const page = () => Math.max(Math.floor(walk.to - walk.from), 1);
const keys = {
  ArrowRight: () => moveTo(walk.at + 1),
  ArrowUp: () => moveTo(walk.at + 1),
  ArrowLeft: () => moveTo(walk.at - 1),
  ArrowDown: () => moveTo(walk.at - 1),
  PageDown: () => moveTo(walk.at + page()),
  PageUp: () => moveTo(walk.at - page()),
  Home: () => moveTo(0),
  End: () => moveTo(walk.calls.length - 1),
  "+": steps.in, "=": steps.in, "-": steps.out, 0: steps.fit, n: steps.next, p: steps.previous,
};

function listen() {
  let dragged = null;
  walkForm.addEventListener("click", event => steps[event.target.dataset.walk]?.());
  walkForm.addEventListener("submit", event => event.preventDefault());
  walkForm.addEventListener("change", changeWalk);
  slider.addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  });
  slider.addEventListener("wheel", event => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    zoom(event.deltaY > 0 ? 1.25 : .8, callAt(event.offsetX));
  }, {passive: false});
  canvas.addEventListener("pointerdown", event => {
    dragged = {x: event.offsetX, from: walk.from, moved: false};
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", event => {
    if (dragged === null || Math.abs(event.offsetX - dragged.x) < 4) return;
    dragged.moved = true;
    const span = walk.to - walk.from;
    lookAt(dragged.from - (event.offsetX - dragged.x) / frame.width * span, span);
    drawWalk();
  });
  canvas.addEventListener("pointerup", event => {
    if (dragged !== null && !dragged.moved && event.offsetX >= frame.left) moveTo(callAt(event.offsetX));
    dragged = null;
  });
}

function changeWalk() {
  walk.model = Number(walkForm.elements.model.value);
  const views = data.views.map((_, view) => view).filter(view => dispatched(view));
  if (!views.includes(Number(walkForm.elements.view.value)) || walkForm.elements.view.options.length !== views.length) fillViews(views);
  walk.view = Number(walkForm.elements.view.value);
  loadWalk();
  slider.setAttribute("aria-valuemin", 1);
  slider.setAttribute("aria-valuemax", walk.calls.length);
  const problem = walk.statuses.findIndex(status => !fine.has(data.statuses[status]));
  moveTo(Math.max(problem, 0));
}

const dispatched = view => data.models[walk.model].rows.some(packed => verdictOf(packed, view) !== null);

function fillViews(views) {
  walkForm.elements.view.replaceChildren();
  for (const view of views) option(walkForm.elements.view, view, data.views[view][0]);
}

if (data.models.length) {
  byId("walk").hidden = false;
  data.models.forEach((model, number) => option(walkForm.elements.model, number, model.name));
  listen();
  changeWalk();
  redraws.push(drawWalk);
  new ResizeObserver(drawWalk).observe(slider);
}
performance.mark("opscan-ready");
