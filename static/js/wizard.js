// The wizard's fields: bytes per second beside what is typed in MB/s, the suggested throttle, the box above the list of
// topics, and the size of a file before it is sent.
// Without this script nothing is missing: the server says both.
(() => {
  let counted = document.getElementById("topic-picker");
  const PLAIN = /^\d{1,12}(\.\d{1,12})?$/;

  function showBytes(field) {
    const shown = document.getElementById(field.dataset.bytes);
    const typed = field.value.trim();
    shown.textContent = PLAIN.test(typed) ? `${Math.round(Number(typed) * 1e6).toLocaleString("en-US")} bytes/s.` : "";
  }

  function checkSize(field) {
    const [file, most] = [field.files[0], Number(field.dataset.mostBytes)];
    const tooLarge = Boolean(file) && file.size > most;
    const sentence = document.getElementById("file-error");
    if (tooLarge) {
      const megabytes = (file.size / 1e6).toLocaleString("en-US", { maximumFractionDigits: 1 });
      sentence.querySelector("span").textContent = field.dataset.tooLarge.replace("SIZE", megabytes).replace("MOST", most / 1e6);
      field.value = "";
    }
    sentence.hidden = !tooLarge;
    field.toggleAttribute("aria-invalid", tooLarge);
    if (tooLarge) field.setAttribute("aria-invalid", "true");
  }

  function useRate(button) {
    for (const [id, value] of [["id_throttle", button.value], ["id_throttle_min", ""], ["id_throttle_max", ""]]) {
      const field = document.getElementById(id);
      field.value = value;
      showBytes(field);
    }
    document.getElementById("id_throttle").focus();
  }

  function showTicked() {
    const box = document.getElementById("topics-all");
    const here = document.querySelectorAll("[name=pick]:checked:not([data-internal])").length;
    const [chosen, all] = [Number(box.dataset.elsewhere) + here, Number(box.dataset.of)];
    box.setAttribute("aria-checked", chosen === 0 ? "false" : chosen === all ? "true" : "mixed");
    box.value = chosen === all ? "none" : "all";
  }

  document.addEventListener("input", (event) => {
    if (event.target.matches("[data-bytes]")) showBytes(event.target);
    if (event.target.matches("[name=pick]")) showTicked();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !event.target.matches("[data-enter]")) return;
    event.preventDefault();
    document.getElementById(event.target.dataset.enter).click();
  });
  // The list was turned over: the sums below it are asked for as if somebody had typed.
  document.addEventListener("htmx:after:swap", () => {
    const picker = document.getElementById("topic-picker");
    if (picker && picker !== counted) picker.dispatchEvent(new Event("input", { bubbles: true }));
    counted = picker;
  });
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-use-rate]");
    if (!button) return;
    event.preventDefault();
    useRate(button);
  });
  document.addEventListener("change", (event) => {
    if (event.target.matches("[data-most-bytes]")) checkSize(event.target);
  });
})();
