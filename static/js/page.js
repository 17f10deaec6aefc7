// Theme: follows the system until the viewer chooses. Loaded in <head> so that the first paint is right.
(() => {
  const root = document.documentElement;
  // The answer to a form stands under the address of its page: that is what a reload, a copied link and live.js ask for.
  if (root.dataset.address) history.replaceState(history.state, "", root.dataset.address);

  // A screen on a wall has no button: it follows its system, whatever was chosen on other pages.
  const stored = "themeAuto" in root.dataset ? null : localStorage.getItem("theme");
  if (stored) root.dataset.theme = stored;
  document.addEventListener("click", (event) => {
    if (!event.target.closest("[data-action=theme]")) return;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    localStorage.setItem("theme", root.dataset.theme);
    document.dispatchEvent(new Event("themechange"));
  });

  // Menus are <details>: a click elsewhere or Escape closes them, Escape gives the focus back.
  const openMenus = () => document.querySelectorAll("details:has(> .menu)[open]");
  document.addEventListener("click", (event) => {
    for (const menu of openMenus()) if (!menu.contains(event.target)) menu.open = false;
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    for (const menu of openMenus()) {
      const inside = menu.contains(document.activeElement);
      menu.open = false;
      if (inside) menu.querySelector("summary").focus();
    }
  });

  // What the server pushes has no token of this visitor: its forms take that of the page when they are sent.
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.method !== "post" || form.querySelector("[name=csrfmiddlewaretoken]")) return;
    const token = document.querySelector("[name=csrfmiddlewaretoken]");
    if (token) form.append(token.cloneNode());
  }, true);

  // Commands of a runbook can be copied, where the browser lets a page do so.
  function addCopyButtons() {
    if (!navigator.clipboard) return;
    for (const block of document.querySelectorAll(".prose pre")) {
      const button = document.createElement("button");
      Object.assign(button, { className: "button button-copy", type: "button", textContent: "Copy" });
      button.addEventListener("click", async () => {
        await navigator.clipboard.writeText(block.textContent.trim());
        button.textContent = "Copied";
      });
      const frame = document.createElement("div");
      frame.className = "copy-frame";
      block.replaceWith(frame);
      frame.append(block, button);
    }
  }

  // Fields that filter the rows of a table on the page; without this script they are not shown.
  function startFilters() {
    for (const field of document.querySelectorAll("[data-filters]")) field.closest("[hidden]")?.removeAttribute("hidden");
    document.addEventListener("input", ({ target }) => {
      if (!target.matches("[data-filters]")) return;
      const wanted = target.value.trim().toLowerCase();
      for (const row of document.getElementById(target.dataset.filters).children) {
        row.hidden = !row.textContent.toLowerCase().includes(wanted);
      }
    });
  }

  addEventListener("DOMContentLoaded", () => {
    addCopyButtons();
    startFilters();
    // On a phone the tab row scrolls; bring the current tab into view.
    for (const tabs of document.querySelectorAll(".tabs")) {
      const current = tabs.querySelector("[aria-current]");
      if (current) tabs.scrollLeft = current.offsetLeft - tabs.offsetLeft - (tabs.clientWidth - current.offsetWidth) / 2;
    }
    waitForDatabase();
  });

  // The page that says that the database is away: loads anew when it is back, or says so where a form is kept in it.
  function waitForDatabase() {
    const notice = document.querySelector("[data-database-away]");
    if (!notice) return;
    const every = Number(notice.dataset.databaseAway) * 1000;
    const words = notice.querySelector("[data-away-words]");
    // Asked of kafkadash itself: a page might be there without the database.
    const answers = async () => {
      const answer = await fetch("/readyz", { cache: "no-store", signal: AbortSignal.timeout(10_000) });
      return (await answer.json()).checks.database.state === "ok";
    };
    const look = async () => {
      if (!(await answers().catch(() => false))) setTimeout(look, every);
      else if (notice.hasAttribute("data-keep")) words.textContent = notice.dataset.keep;
      else location.reload();
    };
    setTimeout(look, every);
  }
})();
