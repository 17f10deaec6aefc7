// The review of a change request: what was read is what is decided about, and what was typed is never lost.
//
// The page is morphed while it is open (live.js). If what is proposed becomes another than the one this page was opened
// with, the forms give way to a sentence; the server refuses the digest of the old one in any case.
(() => {
  const KEPT = `typed:${location.pathname}`;
  const typed = new Map(); // id of a field → what was typed into it
  let read = "";

  const panel = () => document.getElementById("decide");
  const proposed = () => `${panel().dataset.digest} ${panel().dataset.round}`;

  function compare() {
    if (!panel()) return;
    const forms = document.getElementById("decide-forms");
    const changed = Boolean(forms) && proposed() !== read;
    document.getElementById("changed-while-you-read").hidden = !changed;
    if (forms) forms.hidden = changed;
    for (const link of document.querySelectorAll('[href="#decide-decline"]')) link.hidden = changed;
    showWhatHasNoField();
  }

  function showWhatHasNoField() {
    const lost = [...typed].filter(([id, text]) => text.trim() && !document.getElementById(id)).map(([, text]) => text);
    document.getElementById("typed-before").hidden = lost.length === 0;
    document.getElementById("typed-before-text").textContent = lost.join("\n\n");
  }

  function restore() {
    const kept = JSON.parse(sessionStorage.getItem(KEPT) || "[]");
    sessionStorage.removeItem(KEPT);
    for (const [id, text] of kept) {
      const field = document.getElementById(id);
      if (field && !field.value) field.value = text;
      typed.set(id, text);
    }
  }

  document.addEventListener("input", (event) => {
    if (event.target.matches("[data-typed]")) typed.set(event.target.id, event.target.value);
  });

  document.addEventListener("click", (event) => {
    if (!event.target.closest('[data-action="read-again"]')) return;
    event.preventDefault();
    sessionStorage.setItem(KEPT, JSON.stringify([...typed]));
    scrollTo(0, 0);
    location.reload();
  });

  document.addEventListener("kafkadash:shown", compare);
  addEventListener("DOMContentLoaded", () => {
    if (!panel()) return;
    read = proposed();
    restore();
    showWhatHasNoField();
  });
})();
