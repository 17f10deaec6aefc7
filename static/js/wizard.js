// The wizard's fields: bytes per second beside what is typed in MB/s, and the size of a file before it is sent.
// Without this script nothing is missing: the server says both.
(() => {
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

  document.addEventListener("input", (event) => {
    if (event.target.matches("[data-bytes]")) showBytes(event.target);
  });
  document.addEventListener("change", (event) => {
    if (event.target.matches("[data-most-bytes]")) checkSize(event.target);
  });
})();
