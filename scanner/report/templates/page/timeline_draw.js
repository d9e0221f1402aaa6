// Draws the step of timeline.js.

function colors() {
  const style = getComputedStyle(document.documentElement);
  const get = name => style.getPropertyValue(`--${name}`).trim();
  return {statuses: data.statuses.map(get), ink: get("ink"), dim: get("dim"), line: get("line"), soft: get("soft"), glyph: get("glyph"), focus: get("focus")};
}

const laneTop = lane => bandHeight + 10 + walk.used.indexOf(lane) * (laneHeight + laneGap);
// Where the lanes begin and how wide they are; measured once a drawing, for there are many calls.
const frame = {left: 150, width: 50, isNarrow: false};

function measure() {
  frame.isNarrow = canvas.clientWidth < 600;
  frame.left = frame.isNarrow ? 60 : 150;
  frame.width = Math.max(canvas.clientWidth - frame.left, 50);
}

const xOf = call => frame.left + (call - walk.from) / (walk.to - walk.from) * frame.width;
const callAt = x => Math.floor(walk.from + (x - frame.left) / frame.width * (walk.to - walk.from));

function drawWalk() {
  measure();
  const height = bandHeight + 10 + walk.used.length * (laneHeight + laneGap) + 18;
  const ratio = devicePixelRatio || 1;
  canvas.style.height = `${height}px`;
  canvas.width = Math.round(canvas.clientWidth * ratio);
  canvas.height = Math.round(height * ratio);
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  pen.font = "12px system-ui, sans-serif";
  pen.textBaseline = "middle";
  const ink = colors();
  drawFrame(pen, ink);
  if (walk.isOrdered) drawSwitches(pen, ink);
  if ((walk.to - walk.from) > frame.width) drawPixels(pen, ink);
  else drawCalls(pen, ink);
  drawCursor(pen, ink, height);
}

function drawFrame(pen, ink) {
  for (const lane of walk.used) {
    pen.fillStyle = ink.soft;
    pen.fillRect(frame.left, laneTop(lane), frame.width, laneHeight);
    pen.fillStyle = ink.dim;
    pen.fillText(data.lanes[lane][frame.isNarrow ? 0 : 1], 0, laneTop(lane) + laneHeight / 2);
  }
  for (const phase of walk.phases) {
    const [left, right] = [Math.max(xOf(phase.from), frame.left), Math.min(xOf(phase.to), frame.left + frame.width)];
    if (right - left < 1) continue;
    pen.fillStyle = ink.line;
    pen.fillRect(left, 0, right - left - (right - left > 3 ? 1 : 0), bandHeight);
    pen.fillStyle = ink.ink;
    if (pen.measureText(phase.name).width + 10 < right - left) pen.fillText(phase.name, left + 5, bandHeight / 2 + 1);
  }
}

// Only a fallback moves data between the devices.
function drawSwitches(pen, ink) {
  pen.fillStyle = ink.dim;
  let before = -1;
  let drawn = -1;
  for (let call = 0; call < walk.calls.length; call++) {
    const lane = walk.lanes[call];
    if (lane > 1) continue;
    const x = Math.round(xOf(call));
    const isVisible = x >= frame.left && x <= frame.left + frame.width;
    if (before >= 0 && before !== lane && x !== drawn && isVisible) {
      pen.fillRect(x - .5, laneTop(0) + laneHeight, 1, laneTop(1) - laneTop(0) - laneHeight);
      drawn = x;
    }
    before = lane;
  }
}

function drawPixels(pen, ink) {
  const worst = new Map(walk.used.map(lane => [lane, new Uint8Array(Math.ceil(frame.width) + 1).fill(255)]));
  for (let call = Math.floor(walk.from); call < walk.to; call++) {
    const slots = worst.get(walk.lanes[call]);
    const slot = Math.floor(xOf(call) - frame.left);
    if (walk.statuses[call] < slots[slot]) slots[slot] = walk.statuses[call];
  }
  for (const [lane, slots] of worst) {
    drawSlots(pen, ink, lane, slots, true);
    drawSlots(pen, ink, lane, slots, false);
  }
}

// Problems come after what is fine, and wider: one among thousands must be seen.
function drawSlots(pen, ink, lane, slots, isFine) {
  slots.forEach((status, slot) => {
    if (status === 255 || fine.has(data.statuses[status]) !== isFine) return;
    pen.fillStyle = ink.statuses[status];
    pen.fillRect(frame.left + slot, laneTop(lane), isFine ? 1 : 3, laneHeight);
  });
}

function drawCalls(pen, ink) {
  for (let call = Math.floor(walk.from); call < Math.min(walk.to, walk.calls.length); call++) {
    const [left, right] = [Math.max(xOf(call), frame.left), Math.min(xOf(call + 1), frame.left + frame.width)];
    const wide = right - left;
    if (wide <= 0) continue;
    pen.fillStyle = ink.statuses[walk.statuses[call]];
    pen.fillRect(left, laneTop(walk.lanes[call]), Math.max(wide - (wide > 4 ? 1 : 0), 1), laneHeight);
    if (wide < 14) continue;
    pen.fillStyle = ink.glyph;
    drawName(pen, call, left, wide);
  }
}

function drawName(pen, call, left, wide) {
  const name = text(data.models[walk.model].rows[walk.calls[call]][row.op]).replace("aten::", "");
  const sign = data.signs[data.statuses[walk.statuses[call]]];
  const fits = pen.measureText(name).width + 8 < wide;
  pen.fillText(fits ? name : sign, left + 4, laneTop(walk.lanes[call]) + laneHeight / 2);
}

function drawCursor(pen, ink, height) {
  const [left, right] = [xOf(walk.at), xOf(walk.at + 1)];
  if (right >= frame.left && left <= frame.left + frame.width) {
    pen.strokeStyle = ink.focus;
    pen.lineWidth = 2;
    pen.strokeRect(left - 1, bandHeight + 4, Math.max(right - left, 1) + 1, height - bandHeight - 24);
  }
  pen.fillStyle = ink.dim;
  pen.fillText(`call ${(Math.floor(walk.from) + 1).toLocaleString("en")}`, frame.left, height - 8);
  pen.textAlign = "right";
  pen.fillText(Math.min(Math.ceil(walk.to), walk.calls.length).toLocaleString("en"), frame.left + frame.width, height - 8);
  pen.textAlign = "left";
}
