// A span that is chosen in a chart, by dragging or with + and -, becomes the span of the page: its address is a permalink.
document.addEventListener("chartzoom", (event) => {
  const panel = event.target.closest("[data-zoom-address]");
  if (!panel) return;
  event.preventDefault();
  const address = new URL(panel.dataset.zoomAddress, location.href);
  const whole = (seconds) => new Date(1000 * seconds).toISOString().replace(/\.\d+Z$/, "Z");
  address.searchParams.set("from", whole(Math.floor(event.detail.from)));
  address.searchParams.set("to", whole(Math.ceil(event.detail.to)));
  location.assign(address);
});
