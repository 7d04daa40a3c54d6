// Draws the change that stands in the page: a list, and a map of the features that differ.
(() => {
  const { data, $, make, number } = shared;
  const KINDS = ["added", "changed", "removed", "moved"];
  const MEANING = { added: "only in the newer version", changed: "in both, with another geometry or attributes",
    removed: "only in the older version", moved: "same content, another partition" };
  const tone = Object.fromEntries(KINDS.map(kind => [kind, shared.tone(kind)]));

  // --- coordinates: grid steps to world units, y up
  const middle = shared.squeeze(midY());
  function midY() {
    let low = Infinity, high = -Infinity;
    for (const each of data.features) for (const part of [...(each.before || []), ...(each.after || [])]) {
      let y = 0;
      for (let i = 1; i < part[1].length; i += 2) { y += part[1][i]; low = Math.min(low, y); high = Math.max(high, y); }
    }
    return low > high ? 0 : data.origin[1] + (low + high) / 2 * data.unit;
  }
  function decode(shape) {
    if (!shape) return null;
    const box = [Infinity, Infinity, -Infinity, -Infinity];
    const parts = shape.map(([kind, steps]) => {
      const at = new Float64Array(steps.length);
      let x = 0, y = 0;
      for (let i = 0; i < steps.length; i += 2) {
        x += steps[i]; y += steps[i + 1];
        at[i] = x * data.unit * middle; at[i + 1] = y * data.unit;
        box[0] = Math.min(box[0], at[i]); box[1] = Math.min(box[1], at[i + 1]);
        box[2] = Math.max(box[2], at[i]); box[3] = Math.max(box[3], at[i + 1]);
      }
      return { kind, at };
    });
    return { parts, box };
  }
  const join = (a, b) => !a ? b : !b ? a : [Math.min(a[0], b[0]), Math.min(a[1], b[1]), Math.max(a[2], b[2]), Math.max(a[3], b[3])];
  const features = data.features.map((each, index) => {
    const before = decode(each.before), after = each.same ? before : decode(each.after);
    return { ...each, index, before, after, box: join(before && before.box, after && after.box) };
  });
  const context = data.context.map(decode).filter(Boolean);
  const mark = features.length > 500 ? 3 : 6; // many marks must not hide the lines beneath
  const everything = features.reduce((box, each) => join(box, each.box), null) || context.reduce((box, each) => join(box, each.box), null);

  // --- state
  const shown = new Set(KINDS);
  let side = "both", chosen = null, words = "";
  const view = shared.plane({ draw, pick, everything: () => everything, smallest: data.unit * 1000, closest: 50 / data.unit });
  const { pen, sx, sy } = view;

  // --- drawing
  const visible = each => shown.has(each.kind) && (!words || each.text.includes(words));
  function trace(shape) {
    pen.beginPath();
    let fill = false;
    for (const { kind, at } of shape.parts) {
      if (kind === 0) continue;
      let px = sx(at[0]), py = sy(at[1]);
      pen.moveTo(px, py);
      for (let i = 2; i < at.length; i += 2) {
        const x = sx(at[i]), y = sy(at[i + 1]);
        // Steps below half a pixel cannot be seen; the last vertex always counts.
        if (Math.abs(x - px) + Math.abs(y - py) < 0.5 && i < at.length - 2) continue;
        pen.lineTo(x, y); px = x; py = y;
      }
      if (kind === 2) { pen.closePath(); fill = true; }
    }
    return fill;
  }
  function dots(shape, radius, filled) {
    for (const { kind, at } of shape.parts) {
      if (kind !== 0) continue;
      for (let i = 0; i < at.length; i += 2) {
        pen.beginPath();
        pen.arc(sx(at[i]), sy(at[i + 1]), radius, 0, 7);
        if (filled) pen.fill();
        pen.stroke();
      }
    }
  }
  function off(box) { return sx(box[2]) < -20 || sx(box[0]) > view.width + 20 || sy(box[1]) < -20 || sy(box[3]) > view.height + 20; }
  function paint(each, shape, old, strong) {
    if (!shape || off(shape.box)) return;
    const colour = tone[each.kind];
    const small = Math.max(shape.box[2] - shape.box[0], shape.box[3] - shape.box[1]) * view.scale < 5 && shape.parts.some(part => part.kind);
    pen.strokeStyle = pen.fillStyle = colour;
    pen.setLineDash(old ? [6, 4] : []);
    pen.lineWidth = (strong ? 3.5 : 1.8) - (old ? 0.3 : 0);
    if (small) { // too small for its outline: a mark, so that it can be found
      pen.setLineDash([]);
      pen.beginPath();
      pen.rect(sx((shape.box[0] + shape.box[2]) / 2) - mark / 2, sy((shape.box[1] + shape.box[3]) / 2) - mark / 2, mark, mark);
      if (!old) pen.fill();
      pen.stroke();
      return;
    }
    if (trace(shape)) { pen.globalAlpha = old ? 0.06 : 0.16; pen.fill("evenodd"); pen.globalAlpha = 1; }
    pen.stroke();
    pen.setLineDash([]);
    dots(shape, strong ? 6 : features.length > 500 ? 2.5 : 4, !old);
  }
  function arrow(shape) { // which way a line runs, in the middle of its longest step
    for (const { kind, at } of shape.parts) if (kind === 1) {
      let from = 0, long = 0;
      for (let i = 0; i + 3 < at.length; i += 2) {
        const size = Math.hypot(at[i + 2] - at[i], at[i + 3] - at[i + 1]);
        if (size > long) { long = size; from = i; }
      }
      if (long * view.scale < 24) continue;
      const x = (sx(at[from]) + sx(at[from + 2])) / 2, y = (sy(at[from + 1]) + sy(at[from + 3])) / 2;
      const turn = Math.atan2(sy(at[from + 3]) - sy(at[from + 1]), sx(at[from + 2]) - sx(at[from]));
      const tip = shape === chosen?.before && shape !== chosen?.after ? -9 : 9; // the older one beside the newer one
      pen.beginPath();
      for (const [far, bend] of [[8, 0], [-6, 0.9], [-6, -0.9]]) pen.lineTo(x + Math.cos(turn) * tip + Math.cos(turn + bend) * far, y + Math.sin(turn) * tip + Math.sin(turn + bend) * far);
      pen.fill();
    }
  }
  function sides(each, strong) {
    const old = side !== "after" && each.before, now = side !== "before" && each.after;
    if (old && now && each.same) return paint(each, now, false, strong);
    if (old) paint(each, old, true, strong);
    if (now) paint(each, now, false, strong);
    if (each.labels.includes("reversed")) { if (old) arrow(old); if (now) arrow(now); }
    if (!old || !now || !old.parts.length || !now.parts.length || old.parts[0].kind || now.parts[0].kind) return;
    const from = old.parts[0].at, to = now.parts[0].at; // a point that moved: an arrow's shaft between its places
    pen.lineWidth = 1.2;
    pen.beginPath(); pen.moveTo(sx(from[0]), sy(from[1])); pen.lineTo(sx(to[0]), sy(to[1])); pen.stroke();
  }
  function draw() {
    pen.lineJoin = pen.lineCap = "round";
    pen.strokeStyle = pen.fillStyle = "#c3ccd4"; pen.lineWidth = 1;
    for (const shape of context) if (!off(shape.box)) { trace(shape); pen.stroke(); dots(shape, 2, true); }
    const counted = cells();
    for (const { x, y, size, share } of counted) { // the more changes, the darker
      pen.globalAlpha = 0.06 + 0.2 * share;
      pen.fillStyle = "#1d2731";
      pen.fillRect(sx(x * middle), sy(y + size), size * middle * view.scale - 1, size * view.scale - 1);
    }
    pen.globalAlpha = 1;
    for (const each of features) if (each !== chosen && each.box && visible(each)) sides(each, false);
    if (chosen && chosen.box) {
      for (const shape of [chosen.before, chosen.after]) if (shape) { // a halo keeps the chosen feature apart from its neighbours
        pen.strokeStyle = "#ffd84d"; pen.lineWidth = 11; pen.setLineDash([]);
        trace(shape); pen.stroke(); dots(shape, 7, false);
      }
      sides(chosen, true);
    }
    pen.font = "11px system-ui, sans-serif"; pen.textAlign = "center"; pen.textBaseline = "middle";
    for (const { x, y, size, count } of counted) {
      const text = number.format(count), wide = pen.measureText(text).width + 8;
      const px = sx((x + size / 2) * middle), py = sy(y + size / 2);
      pen.fillStyle = "rgba(255,255,255,.85)"; pen.fillRect(px - wide / 2, py - 8, wide, 16);
      pen.fillStyle = "#1d2731"; pen.fillText(text, px, py);
    }
    scale();
  }

  // Where only a part of the features is drawn: how many there are of the classes shown, in squares that have room for a number.
  const LEAST = 46; // pixels
  function cells() {
    const grid = data.cells;
    if (!grid) return [];
    let times = 1;
    while (grid.size * times * middle * view.scale < LEAST && times < grid.across) times *= 2;
    const sums = new Map();
    for (const [at, ...counts] of grid.counts) {
      const column = Math.floor(at % grid.across / times), row = Math.floor(Math.floor(at / grid.across) / times);
      const count = KINDS.reduce((sum, kind, n) => sum + (shown.has(kind) ? counts[n] : 0), 0);
      if (count) sums.set(row * grid.across + column, (sums.get(row * grid.across + column) || 0) + count);
    }
    const most = Math.max(...sums.values()), size = grid.size * times;
    return [...sums].map(([at, count]) => ({ count, size, share: count / most,
      x: grid.x - data.origin[0] + at % grid.across * size, y: grid.y - data.origin[1] + Math.floor(at / grid.across) * size }))
      .filter(({ x, y }) => !off([x * middle, y, (x + size) * middle, y + size]));
  }
  function scale() {
    const metres = data.metres, perPixel = (metres || 1) / view.scale, most = 140 * perPixel;
    const power = 10 ** Math.floor(Math.log10(most)), long = [5, 2, 1].find(n => n * power <= most) * power;
    const bar = $("scale"), short = value => String(+value.toPrecision(3));
    bar.style.width = long / perPixel + "px";
    bar.textContent = !metres ? short(long) + " units" : long >= 1000 ? short(long / 1000) + " km" : long >= 1 ? short(long) + " m" : long >= 0.01 ? short(long * 100) + " cm" : short(long * 1000) + " mm";
  }

  // --- choosing
  function near(each, px, py) {
    let best = Infinity;
    for (const shape of [side !== "after" && each.before, side !== "before" && each.after]) {
      if (!shape || sx(shape.box[0]) > px + 9 || sx(shape.box[2]) < px - 9 || sy(shape.box[1]) < py - 9 || sy(shape.box[3]) > py + 9) continue;
      for (const { at } of shape.parts) for (let i = 0; i < at.length; i += 2) {
        const x = sx(at[i]), y = sy(at[i + 1]), j = Math.min(i + 2, at.length - 2), dx = sx(at[j]) - x, dy = sy(at[j + 1]) - y;
        const t = Math.max(0, Math.min(1, ((px - x) * dx + (py - y) * dy) / (dx * dx + dy * dy || 1)));
        best = Math.min(best, Math.hypot(px - x - t * dx, py - y - t * dy));
      }
    }
    return best;
  }
  function pick(px, py) {
    let best = 9, found = null;
    for (const each of features) if (each.box && visible(each)) {
      const far = near(each, px, py);
      if (far < best) { best = far; found = each; }
    }
    if (found) choose(found, false);
  }
  function value(cell, each, other) {
    if (each === null || each === undefined) { cell.append(make("i", other === undefined ? "" : "null")); return; }
    const text = typeof each === "string" ? each : JSON.stringify(each);
    // Blanks at the ends decide whether two texts are equal, so they are shown.
    cell.textContent = text.replace(/^\s+|\s+$/g, blank => "\u2423".repeat(blank.length)) || "(empty text)";
  }
  function choose(each, zoom) {
    chosen = each;
    shared.mark(each.index, !zoom);
    const box = $("detail");
    box.replaceChildren(make("h2", each.key), make("p", [each.kind, ...each.labels].join(", ") + ": " + MEANING[each.kind] + (each.move ? `; largest move ${length(each.move)}` : "")));
    if (each.fields.length) {
      const table = make("table"), head = make("thead"), row = make("tr"), body = make("tbody");
      for (const name of ["field", data.before, data.after]) row.append(make("th", name));
      head.append(row);
      for (const [name, old, now] of each.fields) {
        const line = make("tr"), was = make("td", undefined, "old"), is = make("td", undefined, "new");
        line.append(make("th", name), was, is);
        value(was, old, now); value(is, now, old);
        body.append(line);
      }
      table.append(head, body);
      box.append(table);
    }
    if (!each.box) box.append(make("p", "This feature has no geometry to show."));
    view.still = false;
    if (zoom && each.box) view.zoomTo(each.box, (each.move || 0) * 1.5); else view.redraw();
  }
  function length(move) {
    const metres = data.metres ? move * data.metres : null;
    return metres === null ? `${+move.toPrecision(3)} units` : metres >= 0.995 ? `${number.format(+metres.toFixed(2))} m` : metres >= 0.00995 ? `${+(metres * 100).toPrecision(3)} cm` : `${+(metres * 1000).toPrecision(2)} mm`;
  }

  // --- the page around the map
  function summary(each) {
    if (each.kind !== "changed") return MEANING[each.kind];
    const said = each.fields.map(([name]) => name);
    if (!each.same && (each.before || each.after)) said.unshift(each.labels.includes("reversed") ? "direction" : each.move ? `geometry (${length(each.move)})` : "geometry");
    return said.join(", ") || "content";
  }
  $("title").append(data.name + " ", make("span", `${data.before} \u2192 ${data.after}`));
  $("notes").textContent = data.notes.join(" ");
  for (const kind of KINDS) {
    const chip = make("label", undefined, "chip " + kind), box = make("input");
    box.type = "checkbox"; box.checked = true; box.disabled = !data.totals[kind];
    box.addEventListener("change", () => { box.checked ? shown.add(kind) : shown.delete(kind); filter(); });
    chip.title = MEANING[kind];
    chip.append(box, make("b", number.format(data.totals[kind])), kind);
    $("classes").append(chip);
  }
  for (const [name, text] of [["before", data.before + " (before)"], ["both", "both"], ["after", data.after + " (after)"]]) {
    const label = make("label", undefined), radio = make("input");
    radio.type = "radio"; radio.name = "side"; radio.checked = name === side;
    radio.addEventListener("change", () => { side = name; view.redraw(); });
    label.append(radio, text);
    $("sides").append(label);
  }
  for (const each of features) {
    each.text = [each.key, each.kind, ...each.labels, ...each.fields.flat()].join(" ").toLowerCase();
    const row = make("li"), item = make("button", undefined, "item " + each.kind);
    item.type = "button"; item.dataset.at = each.index;
    item.append(make("span", [each.kind, ...each.labels].join(", "), "tag"), make("b", each.key), make("small", summary(each)));
    row.append(item);
    each.row = row;
  }
  function filter() {
    words = $("find").value.trim().toLowerCase();
    const rows = features.filter(visible).map(each => each.row);
    $("list").replaceChildren(...(rows.length ? rows : [make("li", "Nothing fits.")]));
    view.redraw();
  }
  $("find").addEventListener("input", filter);
  $("list").addEventListener("click", event => {
    const item = event.target.closest("button");
    if (item) choose(features[+item.dataset.at], true);
  });
  const sample = (text, dash, filled) => `<span><svg width="26" height="10" aria-hidden="true"><path d="M1 5h24" stroke="currentColor" stroke-width="2" stroke-dasharray="${dash}"/><circle cx="13" cy="5" r="3.5" stroke="currentColor" fill="${filled ? "currentColor" : "#fff"}"/></svg>${text}</span>`;
  $("key").innerHTML = sample("before", "6 4", false) + sample("after", "", true); // fixed words only, no data
  $("foot").textContent = [data.attribution, `Coordinates in ${data.crs}`, "made by merestone changes; this page loads nothing from the network"].filter(Boolean).join(" \u00b7 ");
  view.watch();
  filter();
})();
