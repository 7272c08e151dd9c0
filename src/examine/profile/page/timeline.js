// The timeline of units. Pieces are instructions. For each column of pixels, the drawing shows the share of its cycles
// in each state, so that instructions narrower than a column are not lost.
const STATES = [
  { key: "busy", title: "works", fill: "#0072b2", pattern: "plain" },
  { key: "token of load", title: "waits for load", fill: "#e69f00", pattern: "up" },
  { key: "token of gemm", title: "waits for gemm", fill: "#d55e00", pattern: "down" },
  { key: "token of vector", title: "waits for vector", fill: "#cc79a7", pattern: "cross" },
  { key: "token of store", title: "waits for store", fill: "#009e73", pattern: "level" },
  { key: "space", title: "waits for space", fill: "#f0e442", pattern: "upright" },
  { key: "bus", title: "waits for the bus", fill: "#56b4e9", pattern: "dots" },
  { key: "data", title: "waits for data", fill: "#9aa0a8", pattern: "up" },
];
const FIELDS = 11;
const time = data.timeline;

// Pieces with positions in time: an instruction's own cycles come after its start, waits for tokens before it.
const units = time.units.map(unit => {
  let at = 0;
  const pieces = [];
  for (let i = 0; i < unit.pieces.length; i += FIELDS) {
    const [gap, tokens, token, busy, space, bus, wait, length, title, layer, insns] = unit.pieces.slice(i, i + FIELDS);
    at += gap;
    const state = STATES.findIndex(s => s.key === time.states[token]);
    pieces.push({ start: at, tokens, state, own: [busy, space, bus, wait], length, title, layer, insns,
      from: at - tokens, to: at + busy + space + bus + wait });
  }
  return { ...unit, pieces };
});

function firstAt(pieces, cycle) {
  let [low, high] = [0, pieces.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (pieces[middle].to < cycle) low = middle + 1; else high = middle;
  }
  return low;
}

function columns(pieces, from, to, count) {
  const sums = new Float32Array(count * STATES.length);
  const scale = count / (to - from);
  const spread = (begin, end, state, cycles) => {
    if (cycles <= 0 || end <= from || begin >= to) return;
    const [a, b] = [(begin - from) * scale, (end - from) * scale];
    const each = cycles / Math.max(end - begin, 1e-9) / scale;
    for (let c = Math.max(0, Math.floor(a)); c < Math.min(count, Math.ceil(b)); c++) {
      sums[c * STATES.length + state] += each * (Math.min(b, c + 1) - Math.max(a, c));
    }
  };
  for (let i = firstAt(pieces, from); i < pieces.length && pieces[i].from < to; i++) {
    const p = pieces[i];
    if (p.state >= 0) spread(p.from, p.start, p.state, p.tokens);
    [0, 5, 6, 7].forEach((state, k) => spread(p.start, p.to, state, p.own[k]));
  }
  return { sums, full: 1 / scale };
}

// The pixels of each state's pattern.
const patterns = STATES.map(s => new Uint32Array(tile(s.fill, s.pattern).getContext("2d").getImageData(0, 0, 8, 8).data.buffer));

function rowImage(pieces, from, to, width, height) {
  const ratio = window.devicePixelRatio || 1;
  const canvas = element("canvas", { width: Math.max(1, Math.round(width * ratio)), height: Math.round(height * ratio) });
  const c = canvas.getContext("2d");
  const image = c.createImageData(canvas.width, canvas.height);
  const pixels = new Uint32Array(image.data.buffer);
  const { sums, full } = columns(pieces, from, to, canvas.width);
  for (let x = 0; x < canvas.width; x++) {
    const own = sums.subarray(x * STATES.length, (x + 1) * STATES.length);
    let all = 0;
    for (const cycles of own) all += cycles;
    const unit = canvas.height / Math.max(full, all);
    let below = 0;
    for (let state = 0; state < STATES.length; state++) {
      const top = below + own[state] * unit;
      for (let y = Math.round(below); y < Math.round(top); y++) {
        pixels[(canvas.height - 1 - y) * canvas.width + x] = patterns[state][(y % 8) * 8 + x % 8];
      }
      below = top;
    }
  }
  c.putImageData(image, 0, 0);
  return canvas;
}

function layerAt(cycle) { return time.layers.find(([, from, to]) => cycle >= from && cycle < to); }

function tellUnits(cycle) {
  const ms = cycle / data.hw.clock_mhz / 1e3;
  const lines = [`<b>cycle ${whole(cycle)}</b> (${digits(ms)} ms)`];
  const layer = layerAt(cycle);
  if (layer) lines.push("layer " + escaped(layer[0]));
  for (const unit of units) {
    const p = unit.pieces[firstAt(unit.pieces, cycle)];
    if (!p || p.from > cycle) { lines.push(`${unit.name}: no instruction`); continue; }
    const waits = [[STATES[p.state]?.title, p.tokens], ["works", p.own[0]], ["space", p.own[1]], ["bus", p.own[2]], ["data", p.own[3]]];
    const told = waits.filter(([, n]) => n > 0).map(([what, n]) => `${what} ${whole(n)}`).join(", ");
    const many = p.insns > 1 ? ` (${p.insns} of the same kind)` : "";
    lines.push(`<b>${unit.name}</b>: ${escaped(time.titles[p.title])}${many}, from ${whole(p.start)}, ${whole(p.length)} long: ${told}`);
  }
  const point = Math.floor(cycle / data.occupancy.step);
  const held = data.occupancy.memories.map(m => `${m.name} ${percent((m.most[point] || 0) / m.entries)}`).join(", ");
  return lines.join("<br>") + "<br>in use: " + held;
}

const MEMORY_LINES = [["#0072b2", "solid"], ["#d55e00", "dashed"], ["#009e73", "dotted"], ["#cc79a7", "solid"], ["#e69f00", "dashed"]];
const ROW = 46, BAND = 22;

// The cycle at the pointer.
let pointed = 0;

function timelineOption() {
  const rows = ["layers", ...units.map(u => u.name)];
  const top = 8, height = BAND + ROW * units.length;
  // Both charts use the same left and right borders, whatever room the library would reserve for the last label.
  const sides = { left: 70, right: 44, outerBoundsMode: "none" };
  const grids = [{ ...sides, top, height }, { ...sides, top: top + height + 34, height: 150 }];
  const cycles = { type: "value", min: 0, max: time.cycles, axisLabel: { formatter: v => whole(v), hideOverlap: true } };
  const shown = { type: "custom", name: "units", clip: false, silent: true, data: rows.map((_, i) => [0, i]), encode: { x: 0, y: 1 },
    renderItem: (params, api) => {
      const row = api.value(1), area = params.coordSys;
      const [x0, x1] = [api.coord([0, 0])[0], api.coord([time.cycles, 0])[0]];
      const cycleAt = x => (x - x0) / (x1 - x0) * time.cycles;
      const from = Math.max(0, cycleAt(area.x)), to = Math.min(time.cycles, cycleAt(area.x + area.width));
      if (to <= from) return null;
      if (row === 0) return layerBands(area, from, to);
      const y = area.y + BAND + (row - 1) * ROW;
      return { type: "group", children: [
        { type: "image", style: { image: rowImage(units[row - 1].pieces, from, to, area.width, ROW - 8), x: area.x, y: y + 4, width: area.width, height: ROW - 8 } },
        { type: "text", style: { text: units[row - 1].name, x: area.x - 8, y: y + ROW / 2, align: "right", verticalAlign: "middle", fill: colour("ink"), font: fontOf(13) } },
      ] };
    } };
  const lines = data.occupancy.memories.map((memory, i) => ({
    type: "line", name: memory.name, xAxisIndex: 1, yAxisIndex: 1, symbol: "none", step: "end", sampling: "max",
    lineStyle: { color: MEMORY_LINES[i][0], type: MEMORY_LINES[i][1], width: 1.6 }, itemStyle: { color: MEMORY_LINES[i][0] },
    data: memory.most.map((n, point) => [point * data.occupancy.step, 100 * n / memory.entries]),
  }));
  return {
    grid: grids,
    xAxis: [{ ...cycles, gridIndex: 0, axisLabel: { show: false }, splitLine: { show: false } }, { ...cycles, gridIndex: 1, name: "cycles", nameLocation: "middle", nameGap: 24 }],
    yAxis: [{ type: "value", min: 0, max: rows.length, gridIndex: 0, show: false },
      { type: "value", min: 0, max: 100, gridIndex: 1, name: "entries in use, %", nameLocation: "middle", nameGap: 42, nameRotate: 90 }],
    dataZoom: [{ type: "inside", xAxisIndex: [0, 1], filterMode: "none", minSpan: 0.0005, throttle: 30 },
      { type: "slider", xAxisIndex: [0, 1], filterMode: "none", minSpan: 0.0005, left: 70, right: 44, bottom: 8, height: 22, throttle: 30,
        labelFormatter: v => whole(v), textStyle: { color: colour("soft") } }],
    axisPointer: { link: [{ xAxisIndex: "all" }] },
    tooltip: { trigger: "axis", axisPointer: { type: "line", lineStyle: { color: colour("ink") } },
      formatter: () => tellUnits(Math.min(Math.max(0, Math.round(pointed)), time.cycles - 1)) },
    legend: { data: data.occupancy.memories.map(m => m.name), top: top + height + 6, right: 44 },
    series: [shown, ...lines],
  };
}

function layerBands(area, from, to) {
  const children = [];
  const scale = area.width / (to - from);
  time.layers.forEach(([name, begin, end], i) => {
    if (end <= from || begin >= to) return;
    const [a, b] = [Math.max(begin, from), Math.min(end, to)].map(c => area.x + (c - from) * scale);
    children.push({ type: "rect", shape: { x: a, y: area.y, width: Math.max(0.5, b - a), height: BAND - 4 },
      style: { fill: i % 2 ? colour("line") : colour("panel"), stroke: colour("line") } });
    if (b - a > 40) {
      children.push({ type: "text", style: { text: fitted(name, b - a - 8, 11), x: a + 4, y: area.y + BAND / 2 - 2,
        verticalAlign: "middle", fill: colour("ink"), font: fontOf(11) } });
    }
  });
  return { type: "group", children };
}

(function drawTimeline() {
  const box = document.getElementById("timeline");
  let shown = null;
  const merged = time.units.filter(u => u.merged > 1).map(u => `${u.name}: up to ${u.merged}`);
  box.querySelector("p.note").textContent += merged.length
    ? ` Neighboring instructions of one layer that do the same are merged (${merged.join(", ")}); the waits between them count as waits for space.`
    : " Every instruction is shown.";
  const legend = element("div", { class: "legend" });
  STATES.forEach(s => legend.append(element("span", {}, swatch(s.fill, s.pattern), s.title)));
  box.append(legend);
  chart(box, "timeline-chart", 8 + BAND + ROW * units.length + 34 + 150 + 84, "timeline of units and use of scratchpads", timelineOption, live => { shown = live; });
  // The library reports the nearest point of a series; the tooltip needs the cycle at the pointer.
  box.querySelector(".chart").addEventListener("mousemove", event => {
    const left = event.currentTarget.getBoundingClientRect().left;
    pointed = shown.convertFromPixel({ xAxisIndex: 0 }, event.clientX - left);
  }, true);
  const rows = time.units.map(u => ({ name: u.name, insns: u.insns, states: u.states }));
  const share = key => row => row.states[time.states.indexOf(key)] / time.cycles;
  sortable(box, "states", [
    { title: "unit", left: true, value: r => r.name },
    { title: "instructions", value: r => r.insns, show: r => whole(r.insns) },
    ...STATES.map(s => ({ title: s.title, value: share(s.key), show: r => percent(share(s.key)(r)) })),
    { title: "no instruction", value: share("empty"), show: r => percent(share("empty")(r)) },
  ], rows);
})();
