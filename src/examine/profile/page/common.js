// Shared by all pages: data, colors of the current scheme, sections, sortable tables, and charts that follow size and
// scheme.
const data = JSON.parse(document.getElementById("data").textContent);
const main = document.getElementById("main");
const dark = window.matchMedia("(prefers-color-scheme: dark)");
const printing = window.matchMedia("print");
const charts = [];

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
}

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "class") made.className = value; else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

function section(id, title, note) {
  const made = element("section", { id }, element("h2", {}, title));
  if (note) made.append(element("p", { class: "note" }, note));
  main.append(made);
  document.getElementById("nav").append(element("a", { href: "#" + id }, title));
  return made;
}

function known(value) { return value !== null && value !== undefined; }

function whole(value) { return known(value) ? Math.round(value).toLocaleString("en-GB") : "–"; }

function digits(value) {
  if (!known(value)) return "–";
  const size = Math.abs(value);
  return value.toFixed(size >= 1000 ? 0 : size >= 100 ? 1 : size >= 1 ? 3 : 4);
}

function percent(value) { return known(value) ? (100 * value).toFixed(1) + " %" : "–"; }

function bytes(value) {
  if (!known(value)) return "–";
  return value >= 1e6 ? (value / 1e6).toFixed(2) + " MB" : value >= 1e3 ? (value / 1e3).toFixed(1) + " kB" : value + " B";
}

function escaped(text) {
  return String(text).replace(/[&<>"]/g, c => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
}

// Shortens a text to `room` pixels: keeps the start and the end, which tell names apart, and cuts the middle.
const ruler = document.createElement("canvas").getContext("2d");
const fontOf = size => `${size}px system-ui, DejaVu Sans, sans-serif`;
function fitted(text, room, size) {
  ruler.font = fontOf(size);
  if (ruler.measureText(text).width <= room) return text;
  const letters = [...text];
  const cut = kept => letters.slice(0, Math.floor(kept / 2)).join("") + "…" + letters.slice(letters.length - Math.ceil(kept / 2)).join("");
  let [low, high] = [0, letters.length - 1];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (ruler.measureText(cut(middle)).width <= room) low = middle; else high = middle - 1;
  }
  return low ? cut(low) : "…";
}

// A text that can wrap after the characters that join its words.
function breakable(text) {
  return text.split(/(?<=[/+;_.])(?=[^/+;_.])/).flatMap((part, at) => at ? [element("wbr"), part] : [part]);
}

// A table that sorts when a heading is clicked. Columns: title, value (the sort key), show (text or nodes), left (text,
// not numbers), wraps (can use several lines).
function sortable(parent, id, columns, rows) {
  const body = element("tbody");
  const heads = columns.map((column, at) => {
    const head = element("th", { scope: "col", class: column.left ? "left" : "" });
    const button = element("button", { type: "button" }, column.title);
    button.addEventListener("click", () => sort(at));
    head.append(button);
    return head;
  });
  const drawn = rows.map(row => {
    const cells = columns.map(column => {
      const shown = column.show ? column.show(row) : column.value(row);
      const cell = element("td", { class: (column.left ? "left" : "") + (column.wraps ? " wraps" : "") });
      cell.append(...(Array.isArray(shown) ? shown : column.wraps ? breakable(shown) : [shown]));
      if (column.left) cell.title = cell.textContent;
      return cell;
    });
    return { row, line: element("tr", {}, ...cells) };
  });
  let order = null;
  function sort(at) {
    const up = order && order.at === at ? !order.up : Boolean(columns[at].left);
    order = { at, up };
    heads.forEach((head, i) => head.setAttribute("aria-sort", i !== at ? "none" : up ? "ascending" : "descending"));
    const value = columns[at].value;
    const compare = (a, b) => {
      const [x, y] = [value(a.row), value(b.row)];
      if (!known(x) || !known(y)) return Number(known(y)) - Number(known(x));
      const sign = typeof x === "string" ? x.localeCompare(y) : x - y;
      return up ? sign : -sign;
    };
    body.append(...[...drawn].sort(compare).map(d => d.line));
  }
  body.append(...drawn.map(d => d.line));
  const table = element("table", { id }, element("thead", {}, element("tr", {}, ...heads)), body);
  parent.append(element("div", { class: "scroll" }, table));
  return table;
}

// Patterns that repeat the information of colors for people who cannot see them; drawn on a canvas to fill with.
const PATTERNS = {
  plain: () => {},
  up: c => { c.moveTo(-2, 10); c.lineTo(10, -2); c.moveTo(-2, 2); c.lineTo(2, -2); c.moveTo(6, 10); c.lineTo(10, 6); },
  down: c => { c.moveTo(-2, -2); c.lineTo(10, 10); c.moveTo(6, -2); c.lineTo(10, 2); c.moveTo(-2, 6); c.lineTo(2, 10); },
  level: c => { c.moveTo(0, 2); c.lineTo(8, 2); c.moveTo(0, 6); c.lineTo(8, 6); },
  upright: c => { c.moveTo(2, 0); c.lineTo(2, 8); c.moveTo(6, 0); c.lineTo(6, 8); },
  cross: c => { c.moveTo(0, 4); c.lineTo(8, 4); c.moveTo(4, 0); c.lineTo(4, 8); },
  dots: c => { c.arc(2, 2, 0.8, 0, 7); c.moveTo(7, 6); c.arc(6, 6, 0.8, 0, 7); },
};
const tiles = new Map();
function tile(fill, pattern) {
  const key = fill + pattern;
  if (!tiles.has(key)) {
    const canvas = element("canvas", { width: 8, height: 8 });
    const c = canvas.getContext("2d");
    c.fillStyle = fill;
    c.fillRect(0, 0, 8, 8);
    c.strokeStyle = "rgba(0,0,0,0.55)";
    c.beginPath();
    PATTERNS[pattern](c);
    c.stroke();
    tiles.set(key, canvas);
  }
  return tiles.get(key);
}

function swatch(fill, pattern) {
  const canvas = element("canvas", { width: 26, height: 12 });
  const c = canvas.getContext("2d");
  c.fillStyle = c.createPattern(tile(fill, pattern), "repeat");
  c.fillRect(0, 0, 26, 12);
  return canvas;
}

// A chart that is redrawn when the page changes its width or scheme, or is printed. Its option, and its height if that
// is a function, depend on its width.
function chart(parent, id, height, label, option, ready) {
  const box = element("div", { class: "chart", id, role: "img", "aria-label": label });
  parent.append(box);
  const entry = { box, height, option, ready, live: null };
  charts.push(entry);
  draw(entry);
  return entry;
}

function draw(entry) {
  const zoom = entry.live ? (entry.live.getOption().dataZoom || []).map(z => ({ start: z.start, end: z.end })) : [];
  if (entry.live) entry.live.dispose();
  const width = entry.box.clientWidth;
  entry.box.style.height = (typeof entry.height === "function" ? entry.height(width) : entry.height) + "px";
  entry.live = echarts.init(entry.box, null, { renderer: "canvas" });
  const text = { color: colour("ink") }, line = { lineStyle: { color: colour("line") } };
  const axis = one => ({ axisLine: line, splitLine: line, axisTick: line, ...one,
    axisLabel: { color: colour("soft"), ...(one.axisLabel || {}) },
    nameTextStyle: { color: colour("soft"), ...(one.nameTextStyle || {}) } });
  const option = entry.option(width);
  for (const key of ["xAxis", "yAxis"]) {
    if (option[key]) option[key] = Array.isArray(option[key]) ? option[key].map(axis) : axis(option[key]);
  }
  if (option.dataZoom) option.dataZoom.forEach((z, i) => Object.assign(z, zoom[i], z.type === "slider" ? { show: !printing.matches } : {}));
  entry.live.setOption({
    animation: false, textStyle: { ...text, fontFamily: "system-ui, DejaVu Sans, sans-serif" },
    ...option,
    tooltip: { backgroundColor: colour("panel"), borderColor: colour("line"), textStyle: { ...text, fontSize: 12 },
      confine: true, ...(option.tooltip || {}) },
    legend: option.legend ? { textStyle: text, ...option.legend } : undefined,
  });
  if (entry.ready) entry.ready(entry.live);
}

// Horizontal bars, one row per name, with the names on the left. `tell` returns a row's text for the tooltip.
function bars(parent, id, label, names, { rowHeight, x, tell, series }) {
  const SIZE = 11, GAP = 16;
  chart(parent, id, 70 + rowHeight * names.length, label, width => {
    const room = Math.max(120, Math.min(330, width * 0.28));
    return {
      grid: { left: room + GAP, right: 40, top: 34, bottom: 30, outerBoundsMode: "none" },
      legend: { data: series().map(one => one.name), top: 2 },
      xAxis: { type: "value", ...x },
      yAxis: { type: "category", inverse: true, data: names, triggerEvent: true, axisLabel: { fontSize: SIZE, formatter: name => fitted(name, room, SIZE) } },
      tooltip: { trigger: "axis", axisPointer: { type: "shadow" }, formatter: found => `<b>${escaped(names[found[0].dataIndex])}</b><br>${tell(found[0].dataIndex)}` },
      series: series().map(one => ({ type: "bar", ...one })),
    };
  }, live => {
    const box = document.getElementById(id);
    live.on("mouseover", over => { box.title = over.componentType === "yAxis" ? over.value : ""; });
    live.on("mouseout", () => { box.title = ""; });
  });
}

function redraw() { charts.forEach(draw); }
dark.addEventListener("change", redraw);
printing.addEventListener("change", redraw);
window.addEventListener("beforeprint", redraw);
window.addEventListener("afterprint", redraw);
let waiting = 0;
window.addEventListener("resize", () => {
  clearTimeout(waiting);
  waiting = setTimeout(redraw, 100);
});
