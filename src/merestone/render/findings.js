"use strict";
// Draws the findings that stand in #data: a list, and a map of their places. No library, no network.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const $ = id => document.getElementById(id);
  const make = (tag, text, name) => {
    const node = document.createElement(tag);
    if (text !== undefined && text !== null) node.textContent = text;
    if (name) node.className = name;
    return node;
  };
  const style = getComputedStyle(document.documentElement);
  const tone = name => style.getPropertyValue("--" + name).trim();
  const number = new Intl.NumberFormat("en");
  const places = data.places.map(([finding, id, row, x, y, observed, shapes], index) =>
    ({ finding, id, row, x, y, observed, shapes: shapes || [], index, there: x !== null && y !== null }));
  const rows = places.filter(each => each.there);
  const middle = rows.length ? rows.reduce((sum, each) => sum + each.y, 0) / rows.length : 0;
  const squeeze = data.geographic ? Math.cos(Math.max(-85, Math.min(85, middle)) * Math.PI / 180) : 1;

  // --- the view: world units with x squeezed, y up
  const canvas = $("map"), pen = canvas.getContext("2d");
  let view = { x: 0, y: 0, scale: 1 }, width = 1, height = 1, chosen = null, waiting = false, still = true;
  const sx = x => (x * squeeze - view.x) * view.scale + width / 2, sy = y => height / 2 - (y - view.y) * view.scale;
  const grow = (box, x, y) => { box[0] = Math.min(box[0], x); box[1] = Math.min(box[1], y); box[2] = Math.max(box[2], x); box[3] = Math.max(box[3], y); };
  function boxOf(some) {
    const box = [Infinity, Infinity, -Infinity, -Infinity];
    for (const each of some) {
      if (each.there) grow(box, each.x * squeeze, each.y);
      for (const line of each.shapes) for (let i = 1; i < line.length; i += 2) grow(box, line[i] * squeeze, line[i + 1]);
    }
    return box[0] <= box[2] ? box : null;
  }
  function redraw() {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; draw(); });
  }
  function zoomTo(box) {
    if (!box) return;
    const least = data.geographic ? 1e-5 : 1, wide = Math.max(box[2] - box[0], least), high = Math.max(box[3] - box[1], least);
    view = { x: (box[0] + box[2]) / 2, y: (box[1] + box[3]) / 2, scale: Math.min((width - 60) / wide, (height - 60) / high) };
    redraw();
  }
  function zoomBy(factor, px, py) {
    still = false;
    const x = view.x + (px - width / 2) / view.scale, y = view.y - (py - height / 2) / view.scale;
    view.scale *= factor;
    view.x = x - (px - width / 2) / view.scale;
    view.y = y + (py - height / 2) / view.scale;
    redraw();
  }
  function outline(each, strong) {
    pen.lineWidth = strong ? 2.5 : 1.2;
    for (const line of each.shapes) {
      pen.beginPath();
      for (let i = 1; i < line.length; i += 2) pen.lineTo(sx(line[i]), sy(line[i + 1]));
      if (line[0]) { pen.globalAlpha = strong ? 0.18 : 0.08; pen.fill(); pen.globalAlpha = 1; }
      pen.stroke();
    }
  }
  function draw() {
    const ratio = devicePixelRatio || 1;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    for (const strong of [false, true]) for (const each of places) {
      if ((each === chosen) !== strong) continue;
      pen.strokeStyle = pen.fillStyle = tone(data.findings[each.finding].severity);
      outline(each, strong);
      if (!each.there) continue;
      pen.beginPath();
      pen.arc(sx(each.x), sy(each.y), strong ? 8 : 4, 0, 7);
      pen.globalAlpha = strong ? 1 : 0.75; pen.fill(); pen.globalAlpha = 1;
      pen.strokeStyle = "#fff"; pen.lineWidth = 1.5; pen.stroke();
    }
  }
  function choose(each, zoom) {
    const current = $("list").querySelector("[aria-current]");
    if (current) current.removeAttribute("aria-current");
    chosen = each;
    const item = $("list").querySelector(`[data-at="${each.index}"]`);
    if (item) { item.setAttribute("aria-current", "true"); if (!zoom) item.scrollIntoView({ block: "nearest" }); }
    $("at").textContent = each.there ? `${each.x}, ${each.y}` : "no position";
    still = false;
    if (zoom && each.there) zoomTo(boxOf([each])); else redraw();
  }
  function pick(px, py) {
    let best = 12, found = null;
    for (const each of rows) {
      const far = Math.hypot(sx(each.x) - px, sy(each.y) - py);
      if (far < best) { best = far; found = each; }
    }
    if (found) choose(found, false);
  }

  // --- the page
  const said = { pass: "passes", fail: "breaks its contract", error: "could not be checked" }[data.status];
  $("title").append(data.delivery + " ", make("b", said, data.status), make("span", ` \u00b7 ${number.format(data.rows)} rows \u00b7 ${data.contract}`));
  $("notes").textContent = data.notes.join(" ");
  if (!data.findings.length) $("list").append(make("p", "No findings."));
  data.findings.forEach((each, at) => {
    const box = make("section", undefined, each.severity), head = make("h2", `${each.surface}.${each.rule}`);
    head.append(make("small", `${each.severity}, ${number.format(each.count)}`));
    const seen = !each.field || each.observed.includes(each.field) ? each.observed : `${each.field}: ${each.observed}`;
    box.append(head, make("p", seen), make("p", `expected ${each.expected}`, "soft"));
    if (each.remedy) box.append(make("p", `next: ${each.remedy}`, "soft"));
    const mine = places.filter(place => place.finding === at), list = make("ul");
    for (const place of mine) {
      const row = make("li"), item = make("button", undefined, "place"), name = place.id !== null ? place.id : `row ${place.row}`;
      item.type = "button"; item.dataset.at = place.index; item.disabled = !place.there && !place.shapes.length;
      item.textContent = place.observed && place.observed.startsWith(name) ? place.observed : place.observed ? `${name}: ${place.observed}` : name;
      row.append(item); list.append(row);
    }
    if (mine.length) box.append(list);
    $("list").append(box);
  });
  $("list").addEventListener("click", event => {
    const item = event.target.closest("button");
    if (item) choose(places[+item.dataset.at], true);
  });
  $("foot").textContent = `Coordinates in ${data.crs} \u00b7 made by merestone check; this page loads nothing from the network`;

  // --- hands and keys
  let held = null, travelled = 0;
  canvas.addEventListener("pointerdown", event => { canvas.setPointerCapture(event.pointerId); held = event; travelled = 0; });
  canvas.addEventListener("pointermove", event => {
    if (!held) return;
    const dx = event.clientX - held.clientX, dy = event.clientY - held.clientY;
    held = event; still = false;
    travelled += Math.abs(dx) + Math.abs(dy);
    view.x -= dx / view.scale; view.y += dy / view.scale;
    redraw();
  });
  canvas.addEventListener("pointerup", event => {
    held = null;
    if (travelled < 5) { const box = canvas.getBoundingClientRect(); pick(event.clientX - box.left, event.clientY - box.top); }
  });
  canvas.addEventListener("pointercancel", () => { held = null; });
  canvas.addEventListener("wheel", event => {
    event.preventDefault();
    const box = canvas.getBoundingClientRect();
    zoomBy(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0016)), event.clientX - box.left, event.clientY - box.top);
  }, { passive: false });
  const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
  canvas.addEventListener("keydown", event => {
    if (step[event.key]) { still = false; view.x += step[event.key][0] * 60 / view.scale; view.y += step[event.key][1] * 60 / view.scale; redraw(); }
    else if (event.key === "+" || event.key === "=") zoomBy(1.5, width / 2, height / 2);
    else if (event.key === "-") zoomBy(1 / 1.5, width / 2, height / 2);
    else if (event.key === "0") zoomTo(boxOf(places));
    else return;
    event.preventDefault();
  });
  $("in").addEventListener("click", () => zoomBy(1.7, width / 2, height / 2));
  $("out").addEventListener("click", () => zoomBy(1 / 1.7, width / 2, height / 2));
  $("fit").addEventListener("click", () => zoomTo(boxOf(places)));
  new ResizeObserver(() => {
    ({ clientWidth: width, clientHeight: height } = canvas);
    canvas.width = width * (devicePixelRatio || 1); canvas.height = height * (devicePixelRatio || 1);
    if (still) zoomTo(boxOf(places));
    draw();
  }).observe(canvas);
})();
