// The live connection of a page: says in words how it is, freezes, polls when WebSockets do not work, fetches on hints.
//
// hx-ws opens the socket (the address stands on #live) and opens it again after a loss; this script chooses the delay,
// so that it can be said, and puts the frames in (apply.js). Without #live on the page nothing happens here.
(() => {
  const FIRST_DELAY = 500, MAX_DELAY = 15_000, JITTER = 0.3;
  const TRIES_BEFORE_POLLING = 3;
  const POLL = 10_000, POLL_JITTER = 2_000;
  const HINT_JITTER = 1_000;
  const SILENT_AFTER = 40_000; // heartbeats come every 15 s
  const FORGOTTEN_AFTER = 30_000; // hx-ws gives up after close codes that it does not know
  const FETCH_DEADLINE = 10_000;
  const AWAY_AGAIN = 3_000;
  const REFUSED = new Set([4400, 4401, 4403]);
  const ACTING = /^(data-)?hx-(?!morph-skip)/; // attributes by which htmx does something

  // What is known about the connection. `link`: connecting, live, waiting (until `nextTry`), refused.
  let link = "connecting", nextTry = 0, tries = 0, lastHeard = performance.now(), hadSocket = false, restarts = 0;
  // `pollFailed`: the last poll got no answer; null while not polling.
  let pollTimer = null, pollFailed = null;
  let frozen = false, leaving = false;
  // The server says that its database is away: nothing new comes, also through an open socket.
  let databaseAway = false;
  const waiting = new Map(); // key → frame that came while frozen, the latest
  let etag = null, showInAnyCase = false, fetching = null, hintTimer = null, said = "";

  const liveElement = () => document.getElementById("live");

  // -- what hx-ws tells ---------------------------------------------------------------------------------------------

  document.addEventListener("htmx:ws:before:message:incoming", (event) => {
    event.detail.cancelled = true; // frames are put in below, through the freeze and the hold
    lastHeard = performance.now();
    sayAlive();
    if (link !== "live") connected();
    receive(JSON.parse(event.detail.message.data));
  });

  document.addEventListener("htmx:ws:close", (event) => {
    const { connection, code, reason } = event.detail;
    if (reason !== "closed") return; // we replaced #live ourselves
    if (document.hidden && connection.config.pauseOnBackground) {
      link = "waiting"; // hx-ws closed it, and opens it again when the page is looked at
      nextTry = Infinity;
      return;
    }
    if (REFUSED.has(code)) {
      link = "refused";
      askWhy();
    } else {
      tries += 1;
      const delay = Math.min(FIRST_DELAY * 2 ** (tries - 1), MAX_DELAY) * (1 - JITTER * Math.random());
      Object.assign(connection.config, { reconnectDelay: delay, reconnectMaxDelay: delay, reconnectJitter: 0 });
      link = "waiting";
      nextTry = performance.now() + delay;
      if (tries >= TRIES_BEFORE_POLLING) startPolling();
    }
    showConnection();
  });

  // For pages that say so themselves when no answer comes any more.
  function sayAlive() {
    document.dispatchEvent(new Event("kafkadash:alive"));
  }

  // The first message, not the opened socket, proves it: a refusal is also sent through an open one.
  function connected() {
    const again = hadSocket || pollTimer !== null;
    link = "live";
    tries = restarts = 0;
    hadSocket = true;
    stopPolling();
    if (again) fetchSoon(); // panels come by themselves, the rest of the page may have missed a hint
    showConnection();
  }

  function receive(message) {
    if (message.heartbeat) {
      kafkadash.freshness.heard(message.heartbeat);
    } else if (frozen) {
      waiting.set(message.key, message);
      showConnection();
    } else {
      take(message);
    }
  }

  function take(message) {
    // A page that watches a panel it does not show (one reassignment of them) fetches itself instead.
    if (message.hint || !document.querySelector(message.target)) fetchSoon();
    else if (message.parts) takeParts(inert(message.content));
    else kafkadash.apply(message.target, inert(message.content));
  }

  // What is pushed is content only: attributes and elements that make htmx act are taken out.
  function inert(html) {
    const template = document.createElement("template");
    template.innerHTML = html;
    for (const element of template.content.querySelectorAll("*")) {
      if (element.localName.startsWith("hx-") || element.localName === "template") element.remove();
      for (const name of element.getAttributeNames()) if (ACTING.test(name)) element.removeAttribute(name);
    }
    return template.innerHTML;
  }

  // Several elements of the page: each takes the place of the one with its id.
  async function takeParts(content) {
    const template = document.createElement("template");
    template.innerHTML = content;
    for (const part of [...template.content.children]) await kafkadash.apply(`#${CSS.escape(part.id)}`, part.outerHTML);
  }

  // A new element in place of #live makes hx-ws begin anew, with `url` if it is another one now.
  function restart(url) {
    const old = liveElement();
    const fresh = document.createElement("div");
    fresh.id = old.id;
    fresh.setAttribute("hx-ws:connect", url || old.getAttribute("hx-ws:connect"));
    lastHeard = performance.now();
    link = "connecting";
    htmx.swap({ sourceElement: document.body, target: "#live", swap: "outerHTML", text: fresh.outerHTML });
  }

  // -- fetching the page again --------------------------------------------------------------------------------------

  function fetchSoon() {
    if (hintTimer === null) hintTimer = setTimeout(fetchPage, Math.random() * HINT_JITTER);
  }

  // Data that grew old without a push makes sentences untrue that the server wrote while it was fresh.
  document.addEventListener("kafkadash:stale", () => { if (liveElement()) fetchSoon(); });

  // True if the server answered. Morphs <main>; loads anew if the page is no longer ours (signed out, role taken away).
  async function fetchPage() {
    clearTimeout(hintTimer);
    hintTimer = null;
    if (frozen) {
      waiting.set("page", { hint: true });
      return true;
    }
    if (!fetching) fetching = load().finally(() => { fetching = null; });
    return fetching;
  }

  async function load() {
    try {
      const headers = { Accept: "text/html" };
      if (etag) headers["If-None-Match"] = etag;
      const address = location.href.split("#")[0];
      const response = await fetch(address, { headers, cache: "no-store", signal: AbortSignal.timeout(FETCH_DEADLINE) });
      if (response.redirected || [401, 403, 404].includes(response.status)) {
        leaving = true;
        location.reload();
        return true;
      }
      databaseAway = response.status === 503;
      if (databaseAway) setTimeout(fetchSoon, AWAY_AGAIN);
      showConnection();
      if (response.ok || response.status === 304) sayAlive();
      if (response.status === 304) return true;
      if (!response.ok) return false;
      const text = await response.text();
      etag = response.headers.get("ETag");
      await showPage(new DOMParser().parseFromString(text, "text/html"));
      return true;
    } catch (error) {
      if (error instanceof TypeError || error.name === "TimeoutError") return false; // no answer
      throw error;
    }
  }

  // <main> and what stands outside of it and changes as well (data-live-part).
  async function showPage(page) {
    const serverTime = page.querySelector('meta[name="server-time"]');
    if (serverTime) kafkadash.freshness.heard(serverTime.content);
    const main = page.querySelector("main"), live = page.getElementById("live");
    if (main && showInAnyCase) await kafkadash.show("main", main.outerHTML);
    else if (main) await kafkadash.apply("main", main.outerHTML, showPageLater);
    showInAnyCase = false;
    for (const part of page.querySelectorAll("[data-live-part][id]")) await kafkadash.show(`#${part.id}`, part.outerHTML);
    if (page.title) document.title = page.title;
    const url = live?.getAttribute("hx-ws:connect");
    if (url && liveElement() && !sameKeys(url, liveElement().getAttribute("hx-ws:connect"))) restart(url);
  }

  // A whole page that was held back is old when it may be shown: panels were pushed since. A fetch that is under way may
  // be answered with 304, which shows nothing.
  async function showPageLater() {
    showInAnyCase = true;
    await fetching;
    etag = null;
    fetchPage();
  }

  function sameKeys(one, other) {
    const keys = (url) => new URL(url, location.href).searchParams.getAll("key").sort().join(" ");
    return keys(one) === keys(other);
  }

  // Closed as not allowed. If the page itself is still ours, try the keys it names now, once; else it sends us away.
  async function askWhy() {
    const answered = await fetchPage();
    if (leaving) return;
    if (answered && restarts === 0 && liveElement()) {
      restarts += 1;
      if (link === "refused") restart();
    } else {
      startPolling();
    }
    showConnection();
  }

  // -- polling ------------------------------------------------------------------------------------------------------

  function startPolling() {
    if (pollTimer === null) pollTimer = setTimeout(poll, 0);
  }

  async function poll() {
    if (!document.hidden) pollFailed = !(await fetchPage());
    if (pollTimer !== null) pollTimer = setTimeout(poll, POLL + (Math.random() * 2 - 1) * POLL_JITTER);
    showConnection();
  }

  function stopPolling() {
    clearTimeout(pollTimer);
    pollTimer = pollFailed = null;
  }

  // -- freeze -------------------------------------------------------------------------------------------------------

  function toggleFreeze() {
    frozen = !frozen;
    for (const button of document.querySelectorAll("[data-action=freeze]")) {
      button.toggleAttribute("data-frozen", frozen);
      const label = button.querySelector("span");
      button.dataset.whenLive ||= label.textContent;
      label.textContent = frozen ? button.dataset.whenFrozen : button.dataset.whenLive;
    }
    if (!frozen) {
      const frames = [...waiting.values()];
      waiting.clear();
      frames.forEach(take);
    }
    showConnection();
  }

  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-action=freeze]")) toggleFreeze();
  });

  document.addEventListener("freezekey", () => { if (liveElement()) toggleFreeze(); });

  // -- words --------------------------------------------------------------------------------------------------------

  function connectionWords() {
    if (frozen) return ["maintenance", waiting.size ? `Frozen, ${waiting.size} ${waiting.size === 1 ? "update" : "updates"} waiting` : "Frozen"];
    if (databaseAway) return ["unknown", "Stale: database unavailable"];
    if (link === "live") return ["ok", "Live"];
    if (pollFailed === false) return ["ok", `Live, polling every ${POLL / 1000} s`];
    if (pollFailed || !navigator.onLine) return ["unknown", "Offline"];
    if (link === "waiting") {
      const seconds = Math.ceil((nextTry - performance.now()) / 1000);
      return ["warning", seconds > 0 ? `Reconnecting, retry in ${seconds} s` : "Reconnecting"];
    }
    return hadSocket || link === "refused" ? ["warning", "Reconnecting"] : null; // at first: what the server wrote
  }

  function showConnection() {
    const element = document.getElementById("connection"), now = connectionWords();
    if (!element || !now) return;
    const [state, words] = now;
    if (element.dataset.state !== state) {
      element.dataset.state = state;
      element.querySelector("use")?.setAttribute("href", `#shape-${state}`);
    }
    const text = element.querySelector(".connection-words") || element.lastChild;
    if (text.textContent !== words) text.textContent = words;
    const kind = words.split(",")[0];
    if (said && said !== kind) kafkadash.announce(kind);
    said = kind;
  }

  // If hx-ws was loaded after htmx had looked at the page, it has not seen #live yet.
  addEventListener("DOMContentLoaded", () => { if (liveElement()) htmx.process(liveElement()); });

  setInterval(() => {
    if (!liveElement()) return;
    const silent = link === "live" && performance.now() - lastHeard > SILENT_AFTER;
    const forgotten = link === "waiting" && performance.now() - nextTry > FORGOTTEN_AFTER;
    if ((silent || forgotten) && !document.hidden) restart();
    showConnection();
  }, 1000);

  addEventListener("online", () => { if (liveElement() && link !== "live") restart(); });
  addEventListener("offline", showConnection);
  addEventListener("pageshow", (event) => { if (event.persisted && liveElement()) restart(); });
  document.addEventListener("visibilitychange", () => { if (!document.hidden) nextTry = Math.min(nextTry, performance.now()); });
})();
