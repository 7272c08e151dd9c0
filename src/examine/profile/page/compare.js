// The comparison of two profiles of one model.
const [a, b] = [data.a, data.b];
const ratio = (x, y) => known(x) && known(y) && x > 0 ? y / x : null;

(function summary() {
  const box = section("summary", "Summary", `a: ${a.file}, ${a.hw} on ${a.device}, -O${a.level}, ${a.clock_mhz} MHz; b: ${b.file}, ${b.hw} on ${b.device}, -O${b.level}, ${b.clock_mhz} MHz. DRAM ${a.dram} and ${b.dram}.`);
  const show = { count: whole, bytes, number: digits, share: percent };
  sortable(box, "sides", [
    { title: "what", left: true, value: r => r.name },
    { title: "a", value: r => r.a, show: r => show[r.shown](r.a) },
    { title: "b", value: r => r.b, show: r => show[r.shown](r.b) },
    { title: "b / a", value: r => ratio(r.a, r.b), show: r => digits(ratio(r.a, r.b)) },
  ], data.figures);
})();

(function layers() {
  const of = (row, side, key) => row[side] ? row[side][key] : null;
  const times = section("bars", "Time of layers", "Solid bars are a, striped bars are b.");
  const rows = data.layers.filter(r => of(r, "a", "ms") || of(r, "b", "ms"));
  bars(times, "compare-chart", "time of layers", rows.map(r => r.name), {
    rowHeight: 22, x: { name: "ms" },
    tell: at => `a ${digits(of(rows[at], "a", "ms"))} ms, b ${digits(of(rows[at], "b", "ms"))} ms`,
    series: () => [
      { name: "a", data: rows.map(r => of(r, "a", "ms")), itemStyle: { color: colour("accel") } },
      { name: "b", data: rows.map(r => of(r, "b", "ms")), itemStyle: { color: colour("cpu"),
        decal: { color: "rgba(0,0,0,0.4)", dashArrayX: [1, 0], dashArrayY: [2, 4], rotation: Math.PI / 4 } } },
    ],
  });
  const box = section("layers", "Layers", "A layer that only one of the profiles has is in a row of its own.");
  box.classList.add("long");
  sortable(box, "layer-table", [
    { title: "layer", left: true, wraps: true, value: r => r.name },
    { title: "operators", left: true, wraps: true, value: r => r.op },
    ...["a", "b"].flatMap(side => [
      { title: side + " where", left: true, value: r => of(r, side, "where") || "" },
      { title: side + " cycles", value: r => of(r, side, "cycles"), show: r => whole(of(r, side, "cycles")) },
      { title: side + " ms", value: r => of(r, side, "ms"), show: r => digits(of(r, side, "ms")) },
      { title: side + " array used", value: r => of(r, side, "utilization"), show: r => percent(of(r, side, "utilization")) },
    ]),
    { title: "b / a", value: r => ratio(of(r, "a", "ms"), of(r, "b", "ms")), show: r => digits(ratio(of(r, "a", "ms"), of(r, "b", "ms"))) },
  ], data.layers);
  document.getElementById("footer").append(`${a.producer} and ${b.producer}. Charts by Apache ECharts, Apache License 2.0.`);
})();
