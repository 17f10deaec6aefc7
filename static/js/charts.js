// Draws every <div class="chart-canvas" data-chart="{…}"> with uPlot, and renews the panels of charts.
//
// The data is an attribute, so a morph that changes it redraws the chart and keeps everything else:
// {x: [epoch s], range: [from, to], unit, min, max, spark, series: [{label, ink, width, stepped, dashed, y: [number|null]}],
//  limits: [{y, label, ink}], marks: [{x, label}], bands: [{from, to, state, label}]}
// null is a gap. Colours are the page's own, read again when the theme changes.
//
// Charts of a page share their crosshair and their zoom. Pointer: move to read values, drag to zoom, double-click to see
// all. Keys on a focused chart: arrows, Home and End move the crosshair, + and - zoom, Escape shows all.
(() => {
  const INKS = {
    1: "series-1", 2: "series-2", 3: "series-3", 4: "series-4", 5: "series-5", 6: "series-6", other: "ink-2", context: "ink-3",
    limit: "text", critical: "critical-text", warning: "warning-mark",
  };
  const BANDS = ["critical", "warning", "unknown"];
  const FETCH_DEADLINE = 10_000;
  const FEWEST_POINTS = 3; // with fewer in it, a zoom is widened to whole intervals
  const SHORTEST_DRAG = 4; // pixels: less is a click
  const MARK_REACH = 6; // pixels between the crosshair and a mark that is read with it
  const drawn = new WeakMap();
  let zoom = null; // [from, to] that all charts of the page show, or null for the range of each
  const dayOf = (seconds) => new Date(seconds * 1000).toLocaleDateString("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });
  // Ticks less than a minute apart have their seconds, those half a day apart their date unless the one before has the
  // same, or several would read the same.
  const clocks = (ticks) => ticks.map((seconds, place) => {
    const apart = ticks[1] - ticks[0];
    if (apart >= 43200 && (!place || dayOf(ticks[place - 1]) !== dayOf(seconds))) return dayOf(seconds);
    return new Date(seconds * 1000).toISOString().slice(11, apart < 60 ? 19 : 16);
  });
  const number = (value) => value.toLocaleString("en", { maximumFractionDigits: Math.abs(value) < 10 ? 2 : 1 });
  const withUnit = (value, unit) => `${number(value)}${!unit || unit.startsWith("/") ? "" : " "}${unit ?? ""}`;
  const inkOf = (colour, ink) => colour[INKS[ink] ?? "ink-2"];

  function colours(element) {
    const probe = document.createElement("span");
    element.append(probe);
    const names = [...Object.values(INKS), ...BANDS.map((state) => `${state}-fill`), "ink-grid", "text-2", "text-3", "line-control"];
    const found = Object.fromEntries(names.map((name) => {
      probe.style.color = `var(--${name})`;
      return [name, getComputedStyle(probe).color];
    }));
    probe.remove();
    return found;
  }

  // Stretches of time in which something was not well, under grid and lines. One that is too narrow for its word has none.
  function bands(u, spec, colour, family) {
    const { ctx, bbox, scales } = u, ratio = devicePixelRatio;
    ctx.save();
    ctx.font = `600 ${11 * ratio}px ${family}`;
    Object.assign(ctx, { textAlign: "left", textBaseline: "top" });
    for (const band of spec.bands ?? []) {
      const left = u.valToPos(Math.max(band.from, scales.x.min), "x", true);
      const right = u.valToPos(Math.min(band.to, scales.x.max), "x", true);
      ctx.fillStyle = colour[`${band.state}-fill`] ?? colour["unknown-fill"];
      ctx.fillRect(left, bbox.top, right - left, bbox.height);
      if (ctx.measureText(band.label).width + 8 * ratio > right - left) continue;
      ctx.fillStyle = colour["text-2"];
      ctx.fillText(band.label, left + 6 * ratio, bbox.top + 5 * ratio);
    }
    ctx.restore();
  }

  // Limits and marks, over the lines. Everything on the canvas is in device pixels.
  function overlay(u, spec, colour, family) {
    const { ctx, bbox } = u, ratio = devicePixelRatio;
    ctx.save();
    ctx.font = `${11 * ratio}px ${family}`;
    ctx.lineWidth = ratio;
    for (const limit of spec.limits ?? []) {
      const y = Math.round(u.valToPos(limit.y, "y", true)) + 0.5;
      stroke(ctx, inkOf(colour, limit.ink ?? "limit"), [4 * ratio, 3 * ratio], bbox.left, y, bbox.left + bbox.width, y);
      Object.assign(ctx, { fillStyle: colour["text-2"], textAlign: "right", textBaseline: "bottom" });
      ctx.fillText(limit.label, bbox.left + bbox.width, y - 3 * ratio);
    }
    let labelEnd = -Infinity;
    for (const mark of spec.marks ?? []) {
      const x = Math.round(u.valToPos(mark.x, "x", true)) + 0.5;
      stroke(ctx, colour["line-control"], [], x, bbox.top - 3 * ratio, x, bbox.top + bbox.height);
      // A label that would run into its neighbour is left out; the table twin has it.
      const width = ctx.measureText(mark.label).width;
      const start = Math.min(x - ratio, bbox.left + bbox.width - width);
      if (start < labelEnd) continue;
      Object.assign(ctx, { fillStyle: colour["text-2"], textAlign: "left", textBaseline: "bottom" });
      ctx.fillText(mark.label, start, bbox.top - 5 * ratio);
      labelEnd = start + width + 8 * ratio;
    }
    ctx.restore();
  }

  function stroke(ctx, colour, dash, x1, y1, x2, y2) {
    ctx.strokeStyle = colour;
    ctx.setLineDash(dash);
    ctx.beginPath();
    ctx.moveTo(x1, y1);
    ctx.lineTo(x2, y2);
    ctx.stroke();
  }

  // A value between two gaps is no line: it gets a point, or nobody would see it.
  function alone(values) {
    return values.flatMap((v, i) => (v != null && values[i - 1] == null && values[i + 1] == null ? [i] : []));
  }

  function draw(element) {
    const spec = JSON.parse(element.dataset.chart);
    const colour = colours(element), family = getComputedStyle(element).fontFamily;
    const axis = { stroke: colour["text-3"], font: `11px ${family}`, ticks: { show: false }, grid: { stroke: colour["ink-grid"], width: 1 } };
    drawn.get(element)?.destroy();
    const series = spec.series.map((line) => ({
      label: line.label, stroke: inkOf(colour, line.ink), width: line.width ?? 1.5,
      ...(line.stepped ? { paths: uPlot.paths.stepped({ align: 1 }) } : {}), ...(line.dashed ? { dash: [4, 3], spanGaps: !line.stepped } : {}),
      points: { show: true, size: 4, fill: inkOf(colour, line.ink), filter: (u, at) => alone(u.data[at]) },
    }));
    const plot = new uPlot({
      width: element.clientWidth, height: element.clientHeight,
      // uPlot places its ticks by local time: this is a date that has the hours of UTC as its local ones.
      tzDate: (seconds) => new Date(new Date(seconds * 1000).toISOString().slice(0, 19)),
      padding: spec.spark ? [2, 2, 2, 2] : [spec.marks?.length ? 20 : 8, 24, 0, 0],
      legend: { show: false },
      cursor: {
        y: false, sync: { key: "page", scales: ["x", null] }, drag: { x: !spec.spark, y: false, setScale: false },
        points: { size: 7, width: 2 }, bind: { dblclick: () => () => setZoom(null) },
      },
      scales: {
        x: { time: true, range: () => shownRange(spec) },
        y: { range: (u, low, high) => [spec.min ?? 0, (zoom === null ? spec.max : null) ?? Math.max(high * 1.12, spec.min ?? 0, 1e-9)] },
      },
      axes: [
        { ...axis, show: !spec.spark, grid: { show: false }, size: 24, space: 90, values: (u, ticks) => clocks(ticks) },
        { ...axis, show: !spec.spark, size: 62, gap: 6, space: 34, values: (u, ticks) => ticks.map((v) => (v === ticks.at(-1) ? withUnit(v, spec.unit) : number(v))) },
      ],
      series: [{}, ...series],
      hooks: {
        drawClear: [(u) => bands(u, spec, colour, family)],
        draw: [(u) => spec.spark || overlay(u, spec, colour, family)],
        setCursor: [(u) => showReadout(element, u, spec)],
        setSelect: [(u) => zoomToSelection(u, spec)],
      },
    }, [spec.x, ...spec.series.map((line) => line.y)], element);
    drawn.set(element, plot);
    prepareControls(element, spec);
    resized.observe(element);
  }

  // -- zoom -----------------------------------------------------------------------------------------------------------

  // A zoom that has nothing in common with the range of a chart, such as that of another day, leaves the chart whole.
  function shownRange(spec) {
    return zoom && zoom[0] < spec.range[1] && zoom[1] > spec.range[0] ? zoom : spec.range;
  }

  function setZoom(range) {
    zoom = range;
    for (const element of all()) {
      const plot = drawn.get(element);
      if (!plot) continue;
      plot.setData(plot.data); // scales are taken from their functions again
      const reset = element.querySelector(".chart-reset");
      if (reset) reset.hidden = zoom === null;
    }
  }

  function zoomToSelection(u, spec) {
    const { left, width } = u.select;
    u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    if (width < SHORTEST_DRAG) return;
    zoomTo(u, spec, u.posToVal(left, "x"), u.posToVal(left + width, "x"));
  }

  // A page that loads another span instead (timeline.js) prevents the event's default.
  function zoomTo(u, spec, begin, end) {
    const points = spec.x.filter((seconds) => seconds >= begin && seconds <= end).length;
    const [from, to] = points < FEWEST_POINTS ? touchedIntervals(spec, begin, end) : [begin, end];
    const chosen = new CustomEvent("chartzoom", { bubbles: true, cancelable: true, detail: { from, to } });
    if (u.root.dispatchEvent(chosen)) setZoom([from, to]);
  }

  // From the begin of the first interval that is touched to the end of the last one, within the range of the chart.
  function touchedIntervals(spec, begin, end) {
    const [low, high] = spec.range;
    const edges = [low, ...spec.x.filter((seconds) => seconds > low && seconds < high), high];
    return [edges.findLast((edge) => edge <= begin) ?? low, edges.find((edge) => edge >= end) ?? high];
  }

  // By half, or by double, with the point under the crosshair kept in its place.
  function zoomBy(u, spec, factor) {
    const [from, to] = shownRange(spec);
    const centre = u.cursor.idx == null ? (from + to) / 2 : spec.x[u.cursor.idx];
    const [low, high] = [centre - (centre - from) * factor, centre + (to - centre) * factor];
    if (low <= spec.range[0] && high >= spec.range[1]) setZoom(null);
    else zoomTo(u, spec, Math.max(low, spec.range[0]), Math.min(high, spec.range[1]));
  }

  // -- values under the crosshair -------------------------------------------------------------------------------------

  const valueOf = (value, unit) => (value == null ? "no data" : withUnit(value, unit));

  // The date is left out where the chart shows less than a day.
  function timeOf(spec, seconds) {
    const at = new Date(seconds * 1000).toISOString();
    const clock = at.slice(11, spec.x.length > 1 && spec.x[1] - spec.x[0] < 60 ? 19 : 16);
    return spec.range[1] - spec.range[0] > 86_400 ? `${dayOf(seconds)} ${clock}` : clock;
  }

  function notesAt(u, spec, seconds) {
    const place = u.valToPos(seconds, "x");
    const marks = (spec.marks ?? []).filter((mark) => Math.abs(u.valToPos(mark.x, "x") - place) <= MARK_REACH);
    const within = (spec.bands ?? []).filter((band) => band.from <= seconds && seconds <= band.to);
    return [...within, ...marks].map((each) => each.label).filter(Boolean);
  }

  function showReadout(element, u, spec) {
    const readout = element.querySelector(".chart-readout"), at = u.cursor.idx;
    if (!readout) return;
    readout.hidden = at == null || u.cursor.left < 0;
    if (readout.hidden) return;
    const seconds = spec.x[at];
    const time = document.createElement("strong");
    time.textContent = `${timeOf(spec, seconds)} UTC`;
    const values = spec.series.map((line) => {
      const row = document.createElement("span"), key = document.createElement("i"), label = document.createElement("b");
      key.dataset.ink = line.ink;
      label.textContent = valueOf(line.y[at], spec.unit);
      row.append(key, `${line.label} `, label);
      return row;
    });
    const notes = notesAt(u, spec, seconds).map((text) => {
      const row = document.createElement("span");
      row.textContent = text;
      return row;
    });
    readout.replaceChildren(time, ...values, ...notes);
    const place = u.valToPos(seconds, "x") + u.bbox.left / devicePixelRatio;
    const beyond = place + readout.offsetWidth + 24 > element.clientWidth;
    readout.style.left = `${Math.max(0, beyond ? place - readout.offsetWidth - 12 : place + 12)}px`;
    const text = `${time.textContent}: ${spec.series.map((line) => `${line.label} ${valueOf(line.y[at], spec.unit)}`).join(", ")}`;
    element.setAttribute("aria-valuenow", String(at));
    element.setAttribute("aria-valuetext", [text, ...notesAt(u, spec, seconds)].join(". "));
  }

  // A chart is a slider over its points: screen readers then read the values of the point that the keys choose.
  function prepareControls(element, spec) {
    Object.assign(element, { role: "slider", tabIndex: 0 });
    for (const [name, value] of [["valuemin", 0], ["valuemax", spec.x.length - 1], ["valuenow", spec.x.length - 1]]) {
      element.setAttribute(`aria-${name}`, String(value));
    }
    element.setAttribute("aria-valuetext", element.getAttribute("aria-label") ?? "");
    if (element.querySelector(".chart-readout")) return;
    const readout = document.createElement("div");
    Object.assign(readout, { className: "chart-readout", hidden: true });
    element.append(readout);
    if (spec.spark) return;
    const reset = document.createElement("button");
    Object.assign(reset, { className: "button chart-reset", type: "button", textContent: "Reset zoom", hidden: zoom === null });
    reset.addEventListener("click", () => setZoom(null));
    element.append(reset);
  }

  function moveCrosshair(u, spec, index) {
    const [from, to] = shownRange(spec);
    const within = spec.x.flatMap((seconds, at) => (seconds >= from && seconds <= to ? [at] : []));
    if (within.length === 0) return;
    const at = Math.min(within.at(-1), Math.max(within[0], index));
    u.setCursor({ left: u.valToPos(spec.x[at], "x"), top: 0 });
  }

  document.addEventListener("keydown", (event) => {
    const element = event.target instanceof Element && event.target.matches("[data-chart]") ? event.target : null;
    const plot = element && drawn.get(element);
    if (!plot || event.ctrlKey || event.metaKey || event.altKey) return;
    const spec = JSON.parse(element.dataset.chart), last = spec.x.length - 1;
    const now = plot.cursor.idx ?? last, stride = event.shiftKey ? 10 : 1;
    if (event.key === "ArrowLeft") moveCrosshair(plot, spec, now - stride);
    else if (event.key === "ArrowRight") moveCrosshair(plot, spec, plot.cursor.idx == null ? last : now + stride);
    else if (event.key === "Home") moveCrosshair(plot, spec, 0);
    else if (event.key === "End") moveCrosshair(plot, spec, last);
    else if (event.key === "+" && !spec.spark) zoomBy(plot, spec, 0.5);
    else if (event.key === "-" && !spec.spark) zoomBy(plot, spec, 2);
    else if (event.key === "Escape") {
      plot.setCursor({ left: -10, top: -10 });
      setZoom(null);
    } else return;
    event.preventDefault();
  });
  // A crosshair that keys placed goes with the focus.
  document.addEventListener("focusout", (event) => {
    if (event.target instanceof Element && event.target.matches("[data-chart]")) drawn.get(event.target)?.setCursor({ left: -10, top: -10 });
  });

  const resized = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      const plot = drawn.get(target);
      if (plot && plot.width !== target.clientWidth && target.clientWidth > 0) {
        plot.setSize({ width: target.clientWidth, height: target.clientHeight });
      }
    }
  });

  const all = () => document.querySelectorAll("[data-chart]");
  const redraw = () => all().forEach(draw);

  // -- renewing -------------------------------------------------------------------------------------------------------

  // <section id data-refetch="address" data-every="seconds"> is fetched again so often, unless the page is frozen or
  // nobody looks at it; a page that is looked at again fetches at once.
  const fetchedAt = new WeakMap();
  const loaded = performance.now();
  const frozen = () => document.querySelector('[data-action="freeze"][data-frozen]') !== null;

  async function renew(panel) {
    fetchedAt.set(panel, performance.now());
    try {
      const response = await fetch(panel.dataset.refetch, {
        headers: { Accept: "text/html" }, cache: "no-cache", signal: AbortSignal.timeout(FETCH_DEADLINE),
      });
      if (!response.ok || response.redirected) return; // live.js finds out why, and says it
      const html = await response.text();
      if (!frozen() && panel.isConnected) await kafkadash.apply(`#${CSS.escape(panel.id)}`, html);
    } catch (error) {
      if (!(error instanceof TypeError) && error.name !== "TimeoutError") throw error; // no answer: the age says it
    }
  }

  function renewWhatIsDue() {
    if (document.hidden || frozen()) return;
    for (const panel of document.querySelectorAll("[data-refetch]")) {
      const since = performance.now() - (fetchedAt.get(panel) ?? loaded);
      if (since >= 1000 * Number(panel.dataset.every)) renew(panel);
    }
  }

  addEventListener("DOMContentLoaded", async () => {
    await document.fonts?.ready;
    redraw();
    new MutationObserver((seen) => {
      const changed = new Set();
      for (const { type, target, addedNodes } of seen) {
        if (type === "attributes") changed.add(target);
        else for (const node of addedNodes) {
          if (!(node instanceof Element)) continue;
          for (const chart of [node, ...node.querySelectorAll("[data-chart]")]) if (chart.matches("[data-chart]")) changed.add(chart);
        }
      }
      for (const chart of changed) if (chart.isConnected) draw(chart);
    }).observe(document.getElementById("main"), { subtree: true, childList: true, attributeFilter: ["data-chart"] });
    setInterval(renewWhatIsDue, 1000);
  });
  document.addEventListener("themechange", redraw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
})();
