// A canvas that shows points and lines, and rotates them by the mouse. The page defines points(put), which
// draws clouds in their colours, and lines(stroke), and calls show(points) with points that fill the canvas.
"use strict";
const canvas = document.querySelector("canvas"), pen = canvas.getContext("2d");
const bytes = text => Uint8Array.from(atob(text), c => c.charCodeAt(0));

function unpack({low, step, rows}) { // Float32Array of x y z x y z ...
  const whole = new Uint16Array(bytes(rows).buffer);
  return Float32Array.from(whole, (value, n) => low[n % 3] + step[n % 3] * value);
}

function move(points, T) { // T: 16 numbers, row by row
  const out = new Float32Array(points.length);
  for (let n = 0; n < points.length; n += 3) {
    const x = points[n], y = points[n + 1], z = points[n + 2];
    for (let row = 0; row < 3; row++)
      out[n + row] = T[4 * row] * x + T[4 * row + 1] * y + T[4 * row + 2] * z + T[4 * row + 3];
  }
  return out;
}

const pack = (r, g, b) => (255 << 24 | b << 16 | g << 8 | r) >>> 0; // a pixel of ImageData

let radius = 1e-9; // of the ball about the origin that holds most of the points
function fit(points) {
  const far = [];
  for (let n = 0; n < points.length; n += 30) far.push(Math.hypot(points[n], points[n + 1], points[n + 2]));
  far.sort((a, b) => a - b);
  radius = Math.max(far[Math.floor(0.98 * (far.length - 1))], 1e-6);
}
let turn, tilt, zoom, shift;
function begin() { turn = 0.6; tilt = 0.6; zoom = 1; shift = [0, 0]; }

function camera() { // right, up and towards the viewer, in the frame of the page
  const [c, s, d, e] = [Math.cos(turn), Math.sin(turn), Math.cos(tilt), Math.sin(tilt)];
  return [[c, s, 0], [-s * e, c * e, d], [s * d, -c * d, e]];
}

function draw() {
  const ratio = window.devicePixelRatio || 1;
  const width = canvas.width = Math.max(1, Math.round(canvas.clientWidth * ratio));
  const height = canvas.height = Math.max(1, Math.round(canvas.clientHeight * ratio));
  const size = zoom * 0.48 * Math.min(width, height) / radius, [right, up, near] = camera();
  const place = (p, n) => [
    width / 2 + shift[0] * ratio + size * (right[0] * p[n] + right[1] * p[n + 1] + right[2] * p[n + 2]),
    height / 2 + shift[1] * ratio - size * (up[0] * p[n] + up[1] * p[n + 1] + up[2] * p[n + 2])];
  const image = pen.createImageData(width, height), pixels = new Uint32Array(image.data.buffer);
  const depth = new Float32Array(width * height).fill(-Infinity);
  const wide = document.getElementById("size").value;
  const dot = Math.max(1, Math.round(1.6 * wide * ratio * Math.sqrt(Math.min(zoom, 6))));
  const put = (points, color) => {
    for (let n = 0; n < points.length; n += 3) {
      const x = points[n], y = points[n + 1], z = points[n + 2];
      const column = Math.floor(width / 2 + shift[0] * ratio + size * (right[0] * x + right[1] * y));
      const row = Math.floor(height / 2 + shift[1] * ratio - size * (up[0] * x + up[1] * y + up[2] * z));
      if (column < 0 || row < 0 || column > width - dot || row > height - dot) continue;
      const d = near[0] * x + near[1] * y + near[2] * z, paint = color(n / 3);
      for (let v = row; v < row + dot; v++)
        for (let at = v * width + column, end = at + dot; at < end; at++)
          if (d > depth[at]) { depth[at] = d; pixels[at] = paint; }
    }
  };
  points(put);
  light(pixels, depth, width, height);
  pen.putImageData(image, 0, 0);
  lines((color, from, to) => {
    pen.strokeStyle = color; pen.lineWidth = ratio; pen.beginPath();
    for (let n = 0; n < from.length; n += 3) { pen.moveTo(...place(from, n)); pen.lineTo(...place(to, n)); }
    pen.stroke();
  });
}

function light(pixels, depth, width, height) { // a pixel is darker the further it lies behind its neighbours
  const most = 0.03 * radius;
  for (let row = 2; row < height - 2; row++)
    for (let at = row * width + 2, end = at + width - 4; at < end; at++) {
      const d = depth[at];
      if (d === -Infinity) continue;
      let behind = 0;
      for (const next of [at - 2, at + 2, at - 2 * width, at + 2 * width])
        if (depth[next] > d) behind += Math.min(depth[next] - d, most);
      if (!behind) continue;
      const part = Math.exp(-behind / most * 0.35), p = pixels[at];
      pixels[at] = pack((p & 255) * part, (p >> 8 & 255) * part, (p >> 16 & 255) * part);
    }
}

let waiting = false;
function redraw() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => { waiting = false; draw(); });
}

const held = new Map(); // pointers that are down, by their number: [x, y]
canvas.addEventListener("pointerdown", e => {
  held.set(e.pointerId, [e.clientX, e.clientY]);
  try { canvas.setPointerCapture(e.pointerId); } catch { /* events of a script have no pointer */ }
});
for (const name of ["pointerup", "pointercancel"])
  canvas.addEventListener(name, e => held.delete(e.pointerId));
canvas.addEventListener("pointermove", e => {
  const before = held.get(e.pointerId);
  if (!before) return;
  const [dx, dy] = [e.clientX - before[0], e.clientY - before[1]];
  if (held.size === 2) { // two fingers: zoom by the ratio of their distances, move by half of each movement
    const [other] = [...held].filter(([id]) => id !== e.pointerId).map(([, at]) => at);
    const apart = at => Math.hypot(at[0] - other[0], at[1] - other[1]);
    zoom *= apart([e.clientX, e.clientY]) / Math.max(apart(before), 1);
    shift = [shift[0] + dx / 2, shift[1] + dy / 2];
  } else if (e.shiftKey) {
    shift = [shift[0] + dx, shift[1] + dy];
  } else {
    turn -= dx / 200;
    tilt = Math.min(Math.PI / 2, Math.max(-Math.PI / 2, tilt + dy / 200));
  }
  held.set(e.pointerId, [e.clientX, e.clientY]);
  redraw();
});
canvas.addEventListener("wheel", e => {
  e.preventDefault();
  zoom *= Math.exp(-e.deltaY / 600);
  redraw();
}, {passive: false});
canvas.addEventListener("dblclick", () => { begin(); redraw(); });
for (const box of document.querySelectorAll("input"))
  for (const kind of ["change", "input"]) box.addEventListener(kind, redraw);
for (const button of document.querySelectorAll("button"))
  button.addEventListener("click", () => {
    begin();
    [turn, tilt] = button.value.split(" ").map(quarters => quarters * Math.PI / 2);
    redraw();
  });
addEventListener("resize", redraw);
function show(points) {
  fit(points);
  begin();
  draw();
}
