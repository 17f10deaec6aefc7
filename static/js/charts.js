// Draws every <div class="chart-canvas" data-chart="{…}"> with uPlot, and renews the panels of charts.
//
// The data is an attribute, so a morph that changes it redraws the chart and keeps everything else:
// {x: [epoch s], range: [from, to], unit, min, max, series: [{label, ink, width, stepped, dashed, y: [number|null]}],
//  limits: [{y, label}], marks: [{x, label}], bands: [{from, to, state, label}]}
// null is a gap. Colours are the page's own, read again when the theme changes.
(() => {
  const INKS = { 1: "ink-1", 2: "ink-2", 3: "ink-3", limit: "text", critical: "critical-text", warning: "warning-mark" };
  const BANDS = ["critical", "warning", "unknown"];
  const FETCH_DEADLINE = 10_000;
  const drawn = new WeakMap();
  const dayOf = (seconds) => new Date(seconds * 1000).toLocaleDateString("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });
  // Ticks less than a minute apart have their seconds, those half a day apart their date unless the one before has the
  // same, or several would read the same.
  const clocks = (ticks) => ticks.map((seconds, place) => {
    const apart = ticks[1] - ticks[0];
    if (apart >= 43200 && (!place || dayOf(ticks[place - 1]) !== dayOf(seconds))) return dayOf(seconds);
    return new Date(seconds * 1000).toISOString().slice(11, apart < 60 ? 19 : 16);
  });
  const number = (value) => value.toLocaleString("en", { maximumFractionDigits: 1 });

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
      stroke(ctx, colour[INKS[limit.ink] ?? "text"], [4 * ratio, 3 * ratio], bbox.left, y, bbox.left + bbox.width, y);
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
      label: line.label, stroke: colour[INKS[line.ink] ?? "ink-2"], width: line.width ?? 1.5,
      ...(line.stepped ? { paths: uPlot.paths.stepped({ align: 1 }) } : {}), ...(line.dashed ? { dash: [4, 3] } : {}),
      points: { show: true, size: 4, fill: colour[INKS[line.ink] ?? "ink-2"], filter: (u, at) => alone(u.data[at]) },
    }));
    const plot = new uPlot({
      width: element.clientWidth, height: element.clientHeight,
      // uPlot places its ticks by local time: this is a date that has the hours of UTC as its local ones.
      tzDate: (seconds) => new Date(new Date(seconds * 1000).toISOString().slice(0, 19)),
      padding: [spec.marks?.length ? 20 : 8, 24, 0, 0],
      legend: { show: false },
      cursor: { show: false },
      scales: {
        x: { time: true, range: () => spec.range },
        y: { range: (u, low, high) => [spec.min ?? 0, spec.max ?? high * 1.12] },
      },
      axes: [
        { ...axis, grid: { show: false }, size: 24, space: 90, values: (u, ticks) => clocks(ticks) },
        { ...axis, size: 62, gap: 6, space: 34, values: (u, ticks) => ticks.map((v) => number(v) + (v === ticks.at(-1) ? ` ${spec.unit}` : "")) },
      ],
      series: [{}, ...series],
      hooks: { drawClear: [(u) => bands(u, spec, colour, family)], draw: [(u) => overlay(u, spec, colour, family)] },
    }, [spec.x, ...spec.series.map((line) => line.y)], element);
    drawn.set(element, plot);
    resized.observe(element);
  }

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
  const frozen = () => document.querySelector('[data-action="freeze"][aria-pressed="true"]') !== null;

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
