"use strict";
// What the pages share: their data, a few words for the document, and a plane that hands, wheel and keys move. No library, no network.
const shared = (() => {
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
  // Degrees east are shortened to the length that they have at a latitude.
  const squeeze = latitude => data.geographic ? Math.cos(Math.max(-85, Math.min(85, latitude)) * Math.PI / 180) : 1;

  // The plane on the canvas #map, in world units with y up. draw() paints it, pick(x, y) takes a click, everything() gives the box of all;
  // smallest is the extent of a box that has none, closest the largest scale.
  function plane({ draw, pick, everything, smallest, closest }) {
    const canvas = $("map"), pen = canvas.getContext("2d");
    const view = { pen, x: 0, y: 0, scale: 1, width: 1, height: 1, still: true };
    let waiting = false;
    view.sx = x => (x - view.x) * view.scale + view.width / 2;
    view.sy = y => view.height / 2 - (y - view.y) * view.scale;
    const paint = () => {
      const ratio = devicePixelRatio || 1;
      pen.setTransform(ratio, 0, 0, ratio, 0, 0);
      pen.clearRect(0, 0, view.width, view.height);
      draw();
    };
    view.redraw = () => {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => { waiting = false; paint(); });
    };
    view.zoomTo = (box, least) => {
      if (!box) return;
      const room = Math.max(box[2] - box[0], box[3] - box[1], least || 0) || smallest;
      const wide = Math.max(box[2] - box[0], room * 0.02), high = Math.max(box[3] - box[1], room * 0.02);
      const across = Math.max(view.width - 60, 20), down = Math.max(view.height - 90, 20);
      view.x = (box[0] + box[2]) / 2; view.y = (box[1] + box[3]) / 2;
      view.scale = Math.min(across / wide, down / high, 0.4 * Math.min(view.width, view.height) / (least || 1e-300));
      view.redraw();
    };
    view.zoomBy = (factor, px, py) => {
      view.still = false;
      const x = view.x + (px - view.width / 2) / view.scale, y = view.y - (py - view.height / 2) / view.scale;
      view.scale = Math.min(view.scale * factor, closest);
      view.x = x - (px - view.width / 2) / view.scale;
      view.y = y + (py - view.height / 2) / view.scale;
      view.redraw();
    };

    // --- hands and keys
    const held = new Map();
    let travelled = 0, spread = 0;
    canvas.addEventListener("pointerdown", event => {
      canvas.setPointerCapture(event.pointerId);
      held.set(event.pointerId, event); travelled = held.size > 1 ? 99 : 0; spread = 0;
      canvas.classList.add("drag");
    });
    canvas.addEventListener("pointermove", event => {
      const last = held.get(event.pointerId);
      if (!last) return;
      held.set(event.pointerId, event);
      const dx = (event.clientX - last.clientX) / held.size, dy = (event.clientY - last.clientY) / held.size;
      view.still = false;
      travelled += Math.abs(dx) + Math.abs(dy);
      view.x -= dx / view.scale; view.y += dy / view.scale;
      if (held.size === 2) {
        const [a, b] = [...held.values()], box = canvas.getBoundingClientRect(), now = Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY);
        if (spread) view.zoomBy(now / spread, (a.clientX + b.clientX) / 2 - box.left, (a.clientY + b.clientY) / 2 - box.top);
        spread = now;
      }
      view.redraw();
    });
    const release = event => {
      if (held.delete(event.pointerId) && travelled < 5 && event.type === "pointerup") {
        const box = canvas.getBoundingClientRect();
        pick(event.clientX - box.left, event.clientY - box.top);
      }
      canvas.classList.toggle("drag", held.size > 0);
    };
    canvas.addEventListener("pointerup", release);
    canvas.addEventListener("pointercancel", release);
    canvas.addEventListener("wheel", event => {
      event.preventDefault();
      const box = canvas.getBoundingClientRect();
      view.zoomBy(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0016)), event.clientX - box.left, event.clientY - box.top);
    }, { passive: false });
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
    const middle = factor => view.zoomBy(factor, view.width / 2, view.height / 2);
    canvas.addEventListener("keydown", event => {
      if (step[event.key]) {
        view.still = false;
        view.x += step[event.key][0] * 60 / view.scale; view.y += step[event.key][1] * 60 / view.scale;
        view.redraw();
      } else if (event.key === "+" || event.key === "=") middle(1.5);
      else if (event.key === "-") middle(1 / 1.5);
      else if (event.key === "0") view.zoomTo(everything());
      else return;
      event.preventDefault();
    });
    $("in").addEventListener("click", () => middle(1.7));
    $("out").addEventListener("click", () => middle(1 / 1.7));
    $("fit").addEventListener("click", () => view.zoomTo(everything()));
    view.watch = () => new ResizeObserver(() => {
      ({ clientWidth: view.width, clientHeight: view.height } = canvas);
      canvas.width = view.width * (devicePixelRatio || 1); canvas.height = view.height * (devicePixelRatio || 1);
      if (view.still) view.zoomTo(everything());
      paint(); // at once: a resized canvas is blank
    }).observe(canvas);
    return view;
  }

  // One item of the list stands out; the list follows where it scrolls by itself, a page that scrolls as a whole stays.
  function mark(index, follow) {
    const list = $("list"), current = list.querySelector("[aria-current]"), item = list.querySelector(`[data-at="${index}"]`);
    if (current) current.removeAttribute("aria-current");
    if (!item) return;
    item.setAttribute("aria-current", "true");
    if (follow && matchMedia("(min-width:60.01rem)").matches) item.scrollIntoView({ block: "nearest" });
  }
  return { data, $, make, tone, number, squeeze, plane, mark };
})();
