// Keys: g s, g c, /, j k, ? and the switch that turns all single keys off (p is passed on to live.js).
(() => {
  const OURS = new Set(["?", "/", "g", "s", "c", "j", "k", "p"]);
  const SEQUENCE_MS = 1500;
  let pendingG = 0;

  const on = () => localStorage.getItem("keys") !== "off";
  const dialog = () => document.getElementById("keys");

  // Until the next frame after a dialog was closed, the focus is still in it: whoever presses a key then, types nothing.
  const typing = (element) =>
    element instanceof Element &&
    Boolean(element.closest("input, textarea, select, [contenteditable]")) &&
    !element.closest("dialog:not([open])");

  // In the capture phase of the window: when keys are off nobody else hears them either.
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !OURS.has(event.key)) return;
    if (typing(event.target)) return;
    if (!on()) {
      event.stopImmediatePropagation();
      return;
    }
    if (document.querySelector("dialog[open]")) return;
    const afterG = performance.now() - pendingG < SEQUENCE_MS;
    pendingG = event.key === "g" ? performance.now() : 0;
    if (event.key === "?") showHelp();
    else if (event.key === "s" && afterG) document.querySelector("[data-key-status]")?.click();
    else if (event.key === "c" && afterG) document.querySelector("[data-key-changes]")?.click();
    else if (event.key === "/") {
      if (!toFilter()) return;
    } else if (event.key === "j") step(1);
    else if (event.key === "k") step(-1);
    else if (event.key === "p" && !event.repeat) document.dispatchEvent(new Event("freezekey")); // live.js takes it
    else return;
    event.preventDefault();
  }, true);

  // Without a filter on the page the key stays the browser's own.
  function toFilter() {
    const field = document.querySelector("main [data-key-filter]");
    field?.focus();
    field?.select();
    return Boolean(field);
  }

  // Rows are found by their link, so that Enter opens what the keys chose.
  function step(direction) {
    const links = [...document.querySelectorAll("main [data-row-link]")].filter((link) => link.checkVisibility());
    if (links.length === 0) return;
    const now = links.indexOf(document.activeElement);
    const next = now === -1 ? (direction === 1 ? 0 : links.length - 1) : now + direction;
    const link = links[Math.min(links.length - 1, Math.max(0, next))];
    link.focus();
    link.scrollIntoView({ block: "nearest" });
  }

  function showHelp() {
    if (!dialog()) return;
    document.getElementById("keys-on").checked = on();
    dialog().showModal();
  }

  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-action=keys]")) showHelp();
  });
  document.addEventListener("change", (event) => {
    if (event.target.id === "keys-on") localStorage.setItem("keys", event.target.checked ? "on" : "off");
  });
})();
