// Ages of data, in words, ticking by the server's clock; what is older than twice its interval is marked stale.
//
//   <span class="freshness" data-interval="10"><span>data <time datetime="…">6 s</time> old</span></span>
//
// Other scripts call kafkadash.freshness.tick() after they changed the page and .heard(iso) when the server said the time.
(() => {
  const CLOCK_SAMPLES = 8;
  const STALE_AGAIN = 30_000;
  const MINUTE = 60, HOUR = 60 * MINUTE, DAY = 24 * HOUR;

  // Server's clock minus ours, in milliseconds. A message is late by its way here, never early: of the last samples the
  // largest difference is the one that was least late.
  const differences = [];
  let saidStale = 0;

  function heard(iso) {
    const said = Date.parse(iso);
    if (Number.isNaN(said)) return;
    differences.push(said - Date.now());
    if (differences.length > CLOCK_SAMPLES) differences.shift();
  }

  function serverNow() {
    return Date.now() + (differences.length ? Math.max(...differences) : 0);
  }

  function words(seconds) {
    const s = Math.max(0, Math.floor(seconds));
    if (s < MINUTE) return `${s} s`;
    if (s < HOUR) return pair(Math.floor(s / MINUTE), "min", s % MINUTE, "s");
    if (s < DAY) return pair(Math.floor(s / HOUR), "h", Math.floor((s % HOUR) / MINUTE), "min");
    return pair(Math.floor(s / DAY), "d", Math.floor((s % DAY) / HOUR), "h");
  }

  function pair(large, largeUnit, small, smallUnit) {
    return small ? `${large} ${largeUnit} ${small} ${smallUnit}` : `${large} ${largeUnit}`;
  }

  // Dispatches "kafkadash:stale" on the document when something has become old, and now and then while it stays so: what
  // stands around it (a title with an age, a state) was said when it was fresher.
  function tick() {
    const now = serverNow();
    const panels = new Map();
    let anyStale = false, agedNow = false;
    for (const stamp of document.querySelectorAll(".freshness")) {
      const panel = stamp.closest(".panel-head")?.closest(".panel"); // a stamp in a row speaks of its row
      if (panel && stamp.hasAttribute("data-frozen")) panels.set(panel, true);
      const time = stamp.querySelector("time[datetime]");
      const taken = time ? Date.parse(time.getAttribute("datetime")) : NaN;
      if (Number.isNaN(taken)) continue;
      const age = (now - taken) / 1000;
      setText(time, words(age));
      const interval = Number(stamp.dataset.interval);
      if (!interval) continue;
      const stale = Math.abs(age) > 2 * interval; // in the future: the database's clock was set back
      anyStale ||= stale;
      agedNow ||= stale && stamp.dataset.fresh !== "stale";
      setAttribute(stamp, "data-fresh", stale ? "stale" : null);
      if (panel) panels.set(panel, stale || panels.get(panel) === true);
    }
    for (const [panel, stale] of panels) setAttribute(panel, "data-stale", stale ? "" : null);
    foldStamps();
    if (agedNow || (anyStale && performance.now() - saidStale > STALE_AGAIN)) {
      saidStale = performance.now();
      document.dispatchEvent(new Event("kafkadash:stale"));
    }
  }

  // One age for a page: the bar of the cluster has that of the oldest panel. A panel shows its own where it is stale, or
  // comes from facts that are read at another pace.
  function foldStamps() {
    const unread = document.querySelector(".bar-age .freshness:not([data-interval])");
    const read = unread && document.querySelector("#main .panel-head .freshness[data-interval]");
    if (read) unread.replaceWith(read.cloneNode(true));
    const bar = document.querySelector(".bar-age .freshness[data-interval]");
    if (!bar) return;
    const stamps = [...document.querySelectorAll("#main .panel-head .freshness")];
    // A page of other facts, such as a run, has no panel at the pace of the bar: then the bar takes that of the first.
    const paced = stamps.filter((stamp) => stamp.dataset.interval);
    if (paced.length && !paced.some((stamp) => stamp.dataset.interval === bar.dataset.interval)) {
      bar.dataset.interval = paced[0].dataset.interval;
    }
    let oldest = null;
    for (const stamp of stamps) {
      const time = stamp.querySelector("time[datetime]");
      const folded = Boolean(time) && stamp.dataset.interval === bar.dataset.interval && stamp.dataset.fresh !== "stale";
      setAttribute(stamp, "data-folded", folded ? "" : null);
      if (folded && (!oldest || Date.parse(time.dateTime) < Date.parse(oldest.dateTime))) oldest = time;
    }
    const shown = bar.querySelector("time");
    if (!oldest || shown.dateTime === oldest.dateTime) return;
    shown.dateTime = oldest.dateTime;
    setText(shown, oldest.textContent);
  }

  function setText(element, text) {
    if (element.textContent !== text) element.textContent = text;
  }

  function setAttribute(element, name, value) {
    if (element.getAttribute(name) === value) return;
    if (value === null) element.removeAttribute(name);
    else element.setAttribute(name, value);
  }

  const said = document.querySelector('meta[name="server-time"]');
  if (said) heard(said.content);
  window.kafkadash = Object.assign(window.kafkadash || {}, { freshness: { heard, tick, words } });
  setInterval(tick, 1000);
  document.addEventListener("DOMContentLoaded", tick);
  document.addEventListener("visibilitychange", tick);
})();
