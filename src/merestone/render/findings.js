// Draws the findings that stand in the page: a list, and a map of their places.
(() => {
  const { data, $, make, tone, number } = shared;
  const places = data.places.map(([finding, id, row, x, y, observed, shapes], index) =>
    ({ finding, id, row, x, y, observed, shapes: shapes || [], index, there: x !== null && y !== null }));
  const spots = places.filter(each => each.there);
  const squeeze = shared.squeeze(spots.length ? spots.reduce((sum, each) => sum + each.y, 0) / spots.length : 0);

  // --- the map
  let chosen = null;
  const view = shared.plane({ draw, pick, everything: () => boxOf(places), smallest: data.geographic ? 5e-4 : 50, closest: data.geographic ? 1e12 : 1e7 });
  const { pen } = view, sx = x => view.sx(x * squeeze), sy = view.sy;
  const grow = (box, x, y) => { box[0] = Math.min(box[0], x); box[1] = Math.min(box[1], y); box[2] = Math.max(box[2], x); box[3] = Math.max(box[3], y); };
  function boxOf(some) {
    const box = [Infinity, Infinity, -Infinity, -Infinity];
    for (const each of some) {
      if (each.there) grow(box, each.x * squeeze, each.y);
      for (const line of each.shapes) for (let i = 1; i < line.length; i += 2) grow(box, line[i] * squeeze, line[i + 1]);
    }
    return box[0] <= box[2] ? box : null;
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
    chosen = each;
    shared.mark(each.index, !zoom);
    $("at").textContent = each.there ? `${each.x}, ${each.y}` : "no position";
    view.still = false;
    if (zoom && (each.there || each.shapes.length)) view.zoomTo(boxOf([each])); else view.redraw();
  }
  function pick(px, py) {
    let best = 12, found = null;
    for (const each of spots) {
      const far = Math.hypot(sx(each.x) - px, sy(each.y) - py);
      if (far < best) { best = far; found = each; }
    }
    if (found) choose(found, false);
  }

  // --- the list
  // What a place is called: its feature, its row, or what is seen there.
  const named = place => place.id !== null ? (/^-?\d+$/.test(place.id) ? `key ${place.id}` : place.id) : place.row !== null ? `row ${place.row}` : "";
  const words = place => {
    const name = named(place), seen = place.observed || (name ? "" : `${place.x}, ${place.y}`);
    return !name || !seen || seen.startsWith(name) ? seen || name : `${name}: ${seen}`;
  };
  $("title").append(data.delivery + " ", make("b", data.verdict.words, data.verdict.tone), make("span", ` \u00b7 ${number.format(data.rows)} ${data.rows === 1 ? "row" : "rows"} \u00b7 ${data.contract}`));
  $("notes").textContent = data.notes.join(" ");
  if (!data.findings.length) $("list").append(make("p", "No findings."));
  data.findings.forEach((each, at) => {
    const box = make("section", undefined, each.severity), head = make("h2", `${each.surface}.${each.rule}`);
    head.append(make("small", `${each.severity}, ${number.format(each.count)}`));
    const seen = !each.field || each.observed.includes(each.field) ? each.observed : `${each.field}: ${each.observed}`;
    box.append(head, make("p", seen), make("p", `expected ${each.expected}`, "soft"));
    if (each.remedy) box.append(make("p", `next: ${each.remedy}`, "soft"));
    const list = make("ul");
    for (const place of places) {
      // A finding about the whole says of no feature what it has not said above.
      if (place.finding !== at || !(named(place) || place.there)) continue;
      const row = make("li"), item = make("button", words(place), "place");
      item.type = "button"; item.dataset.at = place.index; item.disabled = !place.there && !place.shapes.length;
      row.append(item); list.append(row);
    }
    if (list.children.length) box.append(list);
    $("list").append(box);
  });
  $("list").addEventListener("click", event => {
    const item = event.target.closest("button");
    if (item) choose(places[+item.dataset.at], true);
  });
  $("foot").textContent = `Coordinates in ${data.crs} \u00b7 made by merestone check; this page loads nothing from the network`;
  if (boxOf(places)) view.watch(); else document.body.classList.add("nowhere");
})();
