// The wallboard: a clock and times in the zone of the screen, and the sign that this page still gets answers.
//
// The stylesheet shows #wall-silence a minute after the last sign (an animation with a delay). So it also appears where
// this script, or any other, no longer runs.
(() => {
  const clock = document.getElementById("wall-clock"), silence = document.getElementById("wall-silence");
  const time = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit", timeZoneName: "short" });
  const day = new Intl.DateTimeFormat("en-GB", { weekday: "short", day: "numeric", month: "short" });
  const minute = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
  const DAY = 24 * 3600 * 1000;

  function showClock() {
    const now = new Date();
    clock.dateTime = now.toISOString();
    clock.textContent = `${day.format(now)} ${time.format(now)}`;
  }

  function showLocalTimes() {
    for (const stamp of document.querySelectorAll("time[data-local]")) {
      const then = new Date(stamp.dateTime);
      const text = Date.now() - then < DAY ? minute.format(then) : `${day.format(then)} ${minute.format(then)}`;
      if (stamp.textContent !== text) stamp.textContent = text;
    }
  }

  // A browser gives the lock back when the page is hidden, and refuses it without TLS or with a low battery: then the
  // screen's own settings decide.
  function keepScreenOn() {
    if (!document.hidden) navigator.wakeLock?.request("screen").catch(() => null);
  }

  // An answer is worth nothing on a page whose ages no longer count. Another name of the same animation begins it anew.
  document.addEventListener("kafkadash:alive", () => {
    kafkadash.freshness.tick();
    silence.dataset.beat = silence.dataset.beat === "odd" ? "even" : "odd";
  });
  document.addEventListener("kafkadash:shown", showLocalTimes);
  document.addEventListener("visibilitychange", keepScreenOn);
  showClock();
  showLocalTimes();
  keepScreenOn();
  setInterval(showClock, 1000);
})();
