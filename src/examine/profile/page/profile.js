// A profile: summary, graph, layers, timeline, roofline, traffic, explanations.
const s = data.summary;
const SHAPES = { accel: "rect", cpu: "circle", gpu: "diamond" };
const RUNS = `median of ${data.runs.measured} run${data.runs.measured === 1 ? "" : "s"} after ${data.runs.warm_up} to warm up`;
const PLACES = { accel: "accelerator", cpu: "CPU", gpu: "GPU" };

function placed(where) { return [element("span", { class: "mark " + where }), where]; }

(function summary() {
  const box = section("summary", "Summary",
    `${data.model.file.split("/").pop()}: ${whole(data.model.macs)} multiply-accumulates; -O${data.level}, --offload ${data.offload}; DRAM ${data.dram}; ${data.hw.clock_mhz} MHz.`);
  const figures = element("div", { class: "figures" });
  const figure = (value, what) => figures.append(element("div", { class: "figure" }, element("b", {}, value), element("span", {}, what)));
  figure(whole(s.cycles), "accelerator cycles, exact");
  figure(digits(s.accelerator_ms) + " ms", "the same at its clock");
  figure(percent(s.utilization), "of the array's time used");
  figure(percent(s.offloaded_macs_fraction), "of the MACs offloaded");
  figure(bytes(known(s.bytes_read) ? s.bytes_read + s.bytes_written : null), "over the memory bus");
  figure(digits(s.here.latency_ms) + " ms", "per input, with this machine as host; " + RUNS);
  if (s.on_target_host) {
    figure(digits(s.on_target_host.latency_ms) + " ms", `per input, with ${data.hw.target} as host (modeled)`);
    if (s.target_host_alone_ms) figure(digits(s.target_host_alone_ms / s.on_target_host.latency_ms) + " ×", `faster than ${data.hw.target} alone (modeled)`);
  }
  if (known(s.energy_mj)) figure(digits(s.energy_mj) + " mJ", "energy; " + s.energy_source);
  box.append(figures);
  const parts = [["accelerator", "accelerator", "cycles"], ["launch", "launches", "modeled"], ["host", "host's operators", "measured: " + RUNS], ["convert", "layout conversions", "measured: " + RUNS], ["transfer", "transfers", "modeled"]];
  const rows = parts.map(([key, name, from]) => ({ name, from, here: s.here[key], there: s.on_target_host ? s.on_target_host[key] : null }));
  sortable(box, "parts", [
    { title: "part of an input's time", left: true, value: r => r.name },
    { title: "this machine as host, ms", value: r => r.here, show: r => digits(r.here) },
    { title: "from", left: true, value: r => r.from },
    { title: `${data.hw.target} as host, ms (modeled)`, value: r => r.there, show: r => digits(r.there) },
  ], rows);
  const links = element("p", { class: "note" });
  if (data.trace) links.append(element("a", { href: data.trace }, data.trace), " opens in Perfetto (ui.perfetto.dev). ");
  if (data.waves) links.append(element("a", { href: data.waves }, data.waves), " opens in a waveform viewer such as GTKWave or Surfer.");
  box.append(links);
})();

// The drawing of the graph: margins at its sides, above and below, and the height of arcs that pass nodes.
const SIDE = 50, ABOVE = 44, BELOW = 44, ARCH = 30;
// Pixels from node to node: the widest step whose drawing is not too high, else the smallest.
const STEPS = [92, 80, 72, 60, 48, 36, 28, 20], HIGHEST = 560;

// Positions of the nodes in a drawing of a given width. It runs from left to right and back in bands below each other;
// the height of a band follows from its lanes.
function drawing(width) {
  const room = Math.max(200, width - 2 * SIDE);
  const depths = 1 + Math.max(0, ...data.nodes.map(n => n.at[1]));
  let laid = null;
  for (const least of STEPS) {
    const bands = Math.ceil(depths / (1 + Math.floor(room / least))), perBand = Math.ceil(depths / bands);
    const step = Math.min(room / Math.max(1, perBand - 1), 130), lane = Math.max(30, Math.min(56, least * 0.7));
    const lanes = Array(Math.ceil(depths / perBand)).fill(1);
    data.nodes.forEach(n => { const band = Math.floor(n.at[1] / perBand); lanes[band] = Math.max(lanes[band], 1 + n.at[0]); });
    const tops = [0];
    lanes.forEach((count, band) => tops.push(tops[band] + count * lane + ARCH * 0.8));
    const place = n => {
      const band = Math.floor(n.at[1] / perBand), along = n.at[1] % perBand;
      return { x: (band % 2 ? perBand - 1 - along : along) * step, y: tops[band] + n.at[0] * lane };
    };
    const places = data.nodes.map(place);
    const extent = axis => Math.max(0, ...places.map(p => p[axis])) - Math.min(...places.map(p => p[axis]));
    const [wide, high] = data.nodes.length ? [extent("x"), extent("y")] : [0, 0];
    laid = { step, places, wide, high, height: ABOVE + high + BELOW };
    if (laid.height <= HIGHEST) break;
  }
  return laid;
}

(function graph() {
  const box = section("graph", "Graph", "Where each node runs: squares on the accelerator, circles on the CPU, diamonds on the GPU. Larger nodes do more work; bands run left to right, then back. The wheel zooms, dragging moves.");
  const counts = {};
  data.nodes.forEach(n => counts[n.where] = (counts[n.where] || 0) + 1);
  const legend = element("div", { class: "legend" });
  Object.entries(counts).forEach(([where, n]) => legend.append(element("span", {}, element("span", { class: "mark " + where }), `${PLACES[where] || where}: ${n} nodes`)));
  box.append(legend);
  chart(box, "graph-chart", width => drawing(width).height, "graph of the model", width => {
    const { step, places, wide, high } = drawing(width);
    const most = Math.max(1, ...data.nodes.map(n => n.macs));
    const size = n => Math.min(14, step * 0.3) + Math.min(22, step * 0.24) * Math.sqrt(n.macs / most);
    return {
      // The tooltip goes below the pointer, where it can extend past a drawing of one row.
      tooltip: { confine: false, position: (at, _, text, __, { viewSize, contentSize }) => [Math.max(0, Math.min(at[0] + 16, viewSize[0] - contentSize[0])), at[1] + 16], formatter: found => {
        if (found.dataType !== "node") return "";
        const n = data.nodes[found.data.at];
        const layer = known(n.layer) ? data.layers[n.layer] : null;
        return `<b>${escaped(n.name)}</b><br>${escaped(n.op)} on ${PLACES[n.where] || n.where}<br>${whole(n.macs)} MACs` +
          (layer ? `<br>its layer: ${digits(layer.ms)} ms` : "") + `<div style="max-width:380px;white-space:normal">${escaped(n.why)}</div>`;
      } },
      // If all nodes are on one line, the library needs a width of two pixels.
      series: [{ type: "graph", layout: "none", roam: true, left: SIDE, top: ABOVE, width: wide || 2, height: high || 2, edgeSymbol: ["none", "arrow"], edgeSymbolSize: 6,
        label: { show: step >= 40, position: "bottom", color: colour("soft"), fontSize: step >= 90 ? 12 : 10, formatter: f => data.nodes[f.data.at].op },
        labelLayout: { hideOverlap: true }, emphasis: { focus: "adjacency" },
        lineStyle: { color: colour("soft"), width: 1.2 },
        data: data.nodes.map((n, at) => ({ name: String(at), at, x: places[at].x, y: places[at].y, symbol: SHAPES[n.where] || "circle",
          symbolSize: size(n), itemStyle: { color: colour(n.where) || colour("cpu"), borderColor: colour("ink"), borderWidth: 0.6 } })),
        links: data.nodes.flatMap((n, at) => n.reads.map(read => {
          // A link that passes nodes of its own row arches above them.
          const [from, to] = [places[read], places[at]], far = Math.abs(to.x - from.x);
          const curveness = from.y === to.y && far > step * 1.5 ? Math.min(0.18, 2 * ARCH / far) : 0;
          return { source: String(read), target: String(at), lineStyle: { curveness: to.x > from.x ? curveness : -curveness } };
        })),
      }],
    };
  });
})();

(function layers() {
  const box = section("layers", "Layers", `Each row is computed in one go. The cycles add up to those of the programs: a layer ends when the array begins with the next one, or when it is done if that comes first. Functions of the CPU are divided among their layers, and steps that compilation added have rows of their own; their times are the ${RUNS}. Times of the target host are modeled. Click a heading to sort.`);
  const total = data.layers.reduce((sum, l) => sum + (l.ms || 0), 0);
  sortable(box, "layer-table", [
    { title: "layer", left: true, wraps: true, value: l => l.name },
    { title: "operators", left: true, wraps: true, value: l => l.op },
    { title: "where", left: true, value: l => l.where, show: l => placed(l.where) },
    { title: "MACs", value: l => l.macs, show: l => whole(l.macs) },
    { title: "cycles", value: l => l.cycles, show: l => whole(l.cycles) },
    { title: "ms", value: l => l.ms, show: l => digits(l.ms) },
    { title: "share", value: l => l.ms, show: l => percent(known(l.ms) && total ? l.ms / total : null) },
    { title: "array used", value: l => l.utilization, show: l => percent(l.utilization) },
    { title: "read", value: l => l.read, show: l => bytes(l.read) },
    { title: "written", value: l => l.written, show: l => bytes(l.written) },
    { title: data.hw.target + ", ms", value: l => l.target_host_ms, show: l => digits(l.target_host_ms) },
  ], data.layers);
})();

section("timeline", "Timeline and scratchpads", "Each column shows how its cycles divide into states; blank means no instruction. Below: the share of each scratchpad's entries that will still be read. The wheel zooms, dragging moves both.");

(function roofline() {
  const box = section("roofline", "Roofline", "Every layer with products on the accelerator. The lines are the limits of the array and of the memory bus in this configuration. A layer's time here runs from the start of its first instruction to the end of its last, and can overlap with other layers.");
  const { macs_per_cycle: peak, bytes_per_cycle: rate } = data.ceilings;
  const gops = perCycle => 2 * perCycle * data.hw.clock_mhz / 1e3;
  const points = data.layers.filter(l => l.macs > 0 && l.span_cycles > 0 && l.read + l.written > 0)
    .map(l => ({ name: l.name, value: [l.macs / (l.read + l.written), gops(l.macs / l.span_cycles)], layer: l }));
  if (!points.length) { box.append(element("p", {}, "No layer of this run has products on the accelerator.")); return; }
  const xs = points.map(p => p.value[0]), ridge = peak / rate;
  const low = 10 ** Math.floor(Math.log10(Math.min(...xs, ridge) / 2)), high = 10 ** Math.ceil(Math.log10(Math.max(...xs, ridge) * 2));
  const floor = 10 ** Math.floor(Math.log10(Math.min(...points.map(p => p.value[1]), gops(rate * low))));
  chart(box, "roofline-chart", 420, "roofline", () => ({
    grid: { left: 70, right: 40, top: 40, bottom: 56 },
    legend: { data: ["layers", "ceilings"], top: 4 },
    xAxis: { type: "log", min: low, max: high, name: "MACs per byte of device memory", nameLocation: "middle", nameGap: 30 },
    yAxis: { type: "log", min: floor, max: 10 ** Math.ceil(Math.log10(gops(peak) * 1.05)), name: "billion operations per second", nameLocation: "middle", nameGap: 48 },
    tooltip: { formatter: f => f.data.layer
      ? `<b>${escaped(f.data.name)}</b><br>${digits(f.value[0])} MACs a byte<br>${digits(f.value[1])} GOPS, ${percent(f.value[1] / gops(peak))} of the array's peak<br>at most ${digits(Math.min(gops(peak), gops(rate * f.value[0])))} GOPS here`
      : escaped(f.seriesName) },
    series: [
      { type: "scatter", name: "layers", data: points, symbol: "diamond", symbolSize: p => 9, itemStyle: { color: colour("accel"), borderColor: colour("ink"), borderWidth: 0.6 } },
      { type: "line", name: "ceilings", symbol: "none", silent: true, lineStyle: { color: "#d55e00", width: 2 }, itemStyle: { color: "#d55e00" },
        data: [[low, gops(rate * low)], [ridge, gops(peak)], [high, gops(peak)]],
      },
      { type: "scatter", symbolSize: 1, silent: true, itemStyle: { color: "transparent" }, label: { show: true, color: colour("ink"), fontSize: 12 }, data: [
        { value: [high, gops(peak)], label: { formatter: `array: ${digits(gops(peak))} GOPS`, position: [-8, -18], align: "right" } },
        { value: [Math.sqrt(low * ridge), gops(rate * Math.sqrt(low * ridge))], label: { formatter: `bus: ${rate} bytes per cycle`, position: [-12, -14], align: "right" } } ] },
    ],
  }));
})();

(function traffic() {
  const box = section("traffic", "Memory traffic by tensor", "Bytes that loads and stores move between device memory and the chip. The bus carries whole beats; the rest of these counts as instructions.");
  const shown = data.traffic.slice(0, 24), rest = data.traffic.slice(24);
  if (rest.length) shown.push({ name: `${rest.length} more`, kind: "", read: rest.reduce((n, t) => n + t.read, 0), written: rest.reduce((n, t) => n + t.written, 0) });
  const decal = (rotation, dx) => ({ color: "rgba(0,0,0,0.4)", dashArrayX: [1, 0], dashArrayY: [2, dx], rotation });
  if (shown.length) bars(box, "traffic-chart", "memory traffic by tensor", shown.map(t => t.name), {
    rowHeight: 20, x: { axisLabel: { formatter: bytes } },
    tell: at => `${shown[at].kind}<br>read ${bytes(shown[at].read)}<br>written ${bytes(shown[at].written)}`,
    series: () => [
      { stack: "all", name: "read", data: shown.map(t => t.read), itemStyle: { color: colour("accel") } },
      { stack: "all", name: "written", data: shown.map(t => t.written), itemStyle: { color: colour("cpu"), decal: decal(Math.PI / 4, 4) } },
    ],
  });
  box.classList.add("long");
  sortable(box, "traffic-table", [
    { title: "tensor", left: true, wraps: true, value: t => t.name },
    { title: "kind", left: true, value: t => t.kind },
    { title: "read", value: t => t.read, show: t => bytes(t.read) },
    { title: "written", value: t => t.written, show: t => bytes(t.written) },
  ], data.traffic);
})();

(function explain() {
  const box = section("explain", "Why each operator runs where it does", `The table of --explain. The row of a layer's first node has the layer's figures. ${data.explain.note}.`);
  box.classList.add("long");
  const us = key => ({ value: n => n.cost && n.cost[key], show: n => n.cost && known(n.cost[key]) ? (n.cost[key] / 1e3).toFixed(1) + " us" : "–" });
  sortable(box, "explain-table", [
    { title: "node", left: true, wraps: true, value: n => n.name },
    { title: "operator", left: true, value: n => n.op },
    { title: "where", left: true, value: n => n.where, show: n => placed(n.where) },
    { title: "MACs", value: n => n.macs, show: n => whole(n.macs) },
    { title: "share", value: n => n.macs, show: n => percent(n.macs / Math.max(1, data.model.macs)) },
    { title: "accelerator", ...us("accel_ns") },
    { title: data.explain.cpu, ...us("cpu_ns") },
    { title: "to move", ...us("moving_ns") },
    { title: "why", left: true, wraps: true, value: n => n.why },
  ], data.nodes);
  const hw = section("hardware", "Configuration", `${data.hw.name}, hash ${data.hw.hash}.`);
  hw.append(element("pre", {}, data.hw.toml));
  document.getElementById("footer").append(`${data.producer}. Charts by Apache ECharts, Apache License 2.0.`);
})();
