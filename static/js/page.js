// Theme: follows the system until the viewer chooses. Loaded in <head> so that the first paint is right.
(() => {
  const root = document.documentElement;
  // The answer to a form stands under the address of its page: that is what a reload, a copied link and live.js ask for.
  if (root.dataset.address) history.replaceState(history.state, "", root.dataset.address);

  const stored = localStorage.getItem("theme");
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

  addEventListener("DOMContentLoaded", () => {
    // On a phone the tab row scrolls; bring the current tab into view.
    for (const tabs of document.querySelectorAll(".tabs")) {
      const current = tabs.querySelector("[aria-current]");
      if (current) tabs.scrollLeft = current.offsetLeft - tabs.offsetLeft - (tabs.clientWidth - current.offsetWidth) / 2;
    }
    mirrorAges();
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

  // The bar of a cluster stands outside of what is morphed; its age is that of the panel it names.
  function mirrorAges() {
    const main = document.getElementById("main");
    const mirrors = document.querySelectorAll("[data-mirrors]");
    if (!main || mirrors.length === 0) return;
    const copy = () => {
      for (const mirror of mirrors) {
        const stamp = document.getElementById(mirror.dataset.mirrors)?.querySelector(".freshness[data-interval]");
        const own = mirror.querySelector(".freshness");
        if (!stamp || !own) continue;
        const [from, to] = [stamp.querySelector("time"), own.querySelector("time")];
        if (!to) own.replaceWith(stamp.cloneNode(true));
        else if (to.getAttribute("datetime") !== from.getAttribute("datetime")) {
          to.setAttribute("datetime", from.getAttribute("datetime"));
          own.dataset.interval = stamp.dataset.interval;
        }
      }
    };
    new MutationObserver(copy).observe(main, { subtree: true, childList: true, attributeFilter: ["datetime", "data-interval"] });
  }
})();
