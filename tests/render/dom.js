// As much of a browser as the pages need: runs the script of a page and prints what stands in its title and list, as JSON.
const { readFileSync } = require("fs");
const text = readFileSync(process.argv[2], "utf8");
const [, json, script] = text.match(/<script type="application\/json" id="data">([^]*?)<\/script>\s*<script>([^]*?)<\/script>/);
const silent = new Proxy(() => {}, { get: (_, name) => name === "measureText" ? () => ({ width: 9 }) : name === "fillText" ? word => written.push(word) : () => {}, set: () => true });
const written = [];
class Node {
  constructor(tag, text) { this.tag = tag; this.children = text === undefined ? [] : [text]; this.dataset = {}; this.style = {}; this.heard = {}; this.attributes = {}; this.value = "";
    const names = this.names = new Set();
    this.classList = { add: name => names.add(name), toggle: () => {} }; }
  set textContent(text) { this.children = [String(text)]; }
  get textContent() { return this.children.map(each => each.textContent ?? each).join(""); }
  append(...nodes) { this.children.push(...nodes.map(each => each instanceof Node ? each : String(each))); }
  replaceChildren(...nodes) { this.children = nodes; }
  addEventListener(name, act) { this.heard[name] = act; }
  setAttribute(name, value) { this.attributes[name] = value; }
  removeAttribute(name) { delete this.attributes[name]; }
  all() { return this.children.flatMap(each => each instanceof Node ? [each, ...each.all()] : []); }
  querySelector(asked) { const at = asked.match(/data-at="(\d+)"/); return this.all().find(each => at ? String(each.dataset.at) === at[1] : "aria-current" in each.attributes) || null; }
  closest() { return this; }
  scrollIntoView() {}
  getContext() { return silent; }
  getBoundingClientRect() { return { left: 0, top: 0 }; }
  get clientWidth() { return 800; }
  get clientHeight() { return 600; }
}
const byId = { data: new Node("script", json) };
globalThis.document = { getElementById: id => byId[id] ||= new Node(id), createElement: tag => new Node(tag), documentElement: new Node("html"), body: new Node("body") };
globalThis.getComputedStyle = () => ({ getPropertyValue: name => name });
globalThis.requestAnimationFrame = act => act();
globalThis.matchMedia = () => ({ matches: true });
globalThis.devicePixelRatio = 1;
globalThis.ResizeObserver = class { constructor(act) { this.act = act; } observe() { this.act(); } };
(0, eval)(script);
const items = () => byId.list.all().filter(each => each.tag === "button").map(each => each.textContent);
const out = { title: byId.title.textContent, notes: byId.notes?.textContent, list: byId.list.textContent, items: items(), body: [...document.body.names], numbers: [...written] };
const first = byId.list.all().find(each => each.tag === "button" && !each.disabled);
if (first) { byId.list.heard.click({ target: first }); out.chosen = (byId.detail || byId.at).textContent; out.current = byId.list.all().filter(each => "aria-current" in each.attributes).length; }
const box = byId.classes?.all().find(each => each.tag === "input" && !each.disabled);
if (box) { byId.fit.heard.click(); written.length = 0; box.checked = false; box.heard.change(); out.without = { items: items().length, numbers: [...written] }; }
console.log(JSON.stringify(out));
