// Puts what the server sent into the page: morphs, holds back what would move rows under the pointer, announces changes
// of state. Knows nothing of how it came (live.js does).
(() => {
  const ROWS = "tr[id], .finding-row[id], .cluster-block[id], li[id]";
  const PANELS = ".panel, .board, .cluster-block";
  const SENTENCES = {
    running: "is running", completed: "completed", cancelled: "was cancelled", superseded: "was superseded",
    topic_deleted: "ended: its topic was deleted",
  };

  // Target selector → what shows it, waiting until the reader has left the panel or asks for it.
  const held = new Map();
  const alerts = document.createElement("div");
  alerts.className = "visually-hidden";
  alerts.setAttribute("role", "alert");

  // `html` replaces `target` (a selector), unless rows would move under pointer or focus: then it is held back, and
  // `later` is called when it may be shown. Without `later` the same html is shown then.
  async function apply(target, html, later = () => show(target, html)) {
    const element = document.querySelector(target);
    if (!element) return;
    const disturbed = busyPanels(element).find((panel) => movesRows(panel, element, html));
    if (disturbed) {
      held.set(target, later);
      offerNewOrder(disturbed, target);
    } else {
      await show(target, html);
    }
  }

  // Now, whoever is in the panel.
  async function show(target, html) {
    const element = document.querySelector(target);
    if (!element) return;
    for (const other of held.keys()) if (other === target || element.querySelector(other)) held.delete(other);
    const before = states(element);
    await htmx.swap({ sourceElement: document.body, target, swap: "outerMorph", text: html, transition: false });
    kafkadash.freshness.tick();
    announceChanges(before, states(document.querySelector(target)));
    document.dispatchEvent(new Event("kafkadash:shown"));
  }

  // The panels in the element, itself included, that the pointer or the focus is in.
  function busyPanels(element) {
    return [element, ...element.querySelectorAll(PANELS)].filter((panel) => panel.matches(PANELS))
      .filter((panel) => panel.matches(":hover") || panel.contains(document.activeElement));
  }

  // Rows may be added or taken away at the end; anything else moves one.
  function movesRows(panel, element, html) {
    const template = document.createElement("template");
    template.innerHTML = html;
    const fresh = panel === element || !panel.id
      ? template.content.firstElementChild
      : template.content.querySelector(`#${CSS.escape(panel.id)}`);
    if (!fresh) return true;
    const now = rowIds(panel === element || panel.id ? panel : element), then = rowIds(fresh);
    return now.slice(0, then.length).some((id, i) => id !== then[i]);
  }

  function rowIds(element) {
    return [...element.querySelectorAll(ROWS)].map((row) => row.id);
  }

  function offerNewOrder(panel, target) {
    if (document.querySelector(`[data-action="show-order"][data-target="${CSS.escape(target)}"]`)) return;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "button button-quiet order-changed";
    button.dataset.action = "show-order";
    button.dataset.target = target;
    button.textContent = "Show new order";
    (panel.querySelector(".panel-head") || panel).append(button);
    announce("Order changed. The new order is shown when you leave the panel.");
  }

  // The button is not in the server's HTML, so morphing takes it away by itself.
  function showHeld(target) {
    const later = held.get(target);
    held.delete(target);
    if (later) later();
  }

  function showWhatNobodyIsIn() {
    for (const target of [...held.keys()]) {
      const element = document.querySelector(target);
      if (!element) held.delete(target);
      else if (busyPanels(element).length === 0) showHeld(target);
    }
  }

  // Id → state of everything in the element that has one: rows by outcome, panels and blocks by state.
  function states(element) {
    const found = new Map();
    if (!element) return found;
    for (const part of [element, ...element.querySelectorAll("[id][data-outcome], [id][data-state]")]) {
      const state = part.dataset.outcome || part.dataset.state;
      if (part.id && state) found.set(part.id, state);
    }
    return found;
  }

  function announceChanges(before, after) {
    for (const [id, state] of after) {
      if (!before.has(id) || before.get(id) === state) continue;
      const sentence = `${nameOf(document.getElementById(id))} ${SENTENCES[state] || `is now ${state}`}.`;
      if (state === "critical") alerts.textContent = sentence;
      else announce(sentence);
    }
  }

  function nameOf(element) {
    const label = element.dataset.name || element.getAttribute("aria-label") || element.querySelector("h2, h3, th, td, a")?.textContent || element.id;
    return label.replace(/\s+/g, " ").trim();
  }

  function announce(sentence) {
    const region = document.getElementById("announcements");
    if (region) region.textContent = sentence;
  }

  document.addEventListener("DOMContentLoaded", () => document.body.append(alerts));
  document.addEventListener("pointerout", showWhatNobodyIsIn);
  document.addEventListener("focusout", () => setTimeout(showWhatNobodyIsIn));
  document.addEventListener("click", (event) => {
    const button = event.target.closest('[data-action="show-order"]');
    if (button) showHeld(button.dataset.target);
  });
  window.kafkadash = Object.assign(window.kafkadash || {}, { apply, show, announce });
})();
