// SPDX-License-Identifier: Apache-2.0
// Shows the value under the pointer or finger. Everything it shows stands in the table below the figure, too.
(() => {
  const tip = document.getElementById("tip");
  const hide = () => { tip.hidden = true; };
  const show = (event) => {
    const mark = event.target.closest?.(".chart [aria-label][aria-roledescription]");
    const kind = mark?.getAttribute("aria-roledescription");
    if (!["point", "tick", "rule", "rule mark"].includes(kind)) { hide(); return; }
    tip.textContent = mark.getAttribute("aria-label");
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    const left = Math.min(event.clientX + 12, innerWidth - box.width - 8);
    const above = event.clientY - box.height - 12;
    tip.style.left = `${Math.max(8, left)}px`;
    tip.style.top = `${above < 8 ? event.clientY + 18 : above}px`;
  };
  document.addEventListener("pointermove", show);
  document.addEventListener("pointerdown", show);
  document.addEventListener("scroll", hide, { passive: true });
  // A figure leads to a result that may be folded; not every browser unfolds it.
  const unfold = () => {
    const aim = location.hash && document.getElementById(location.hash.slice(1));
    const fold = aim && aim.closest("details:not([open])");
    if (fold) { fold.open = true; aim.scrollIntoView(); }
  };
  addEventListener("hashchange", unfold);
  addEventListener("DOMContentLoaded", unfold);
  // Paper has no clicks: what is folded is printed in full, but for lists of trials, which may be many pages.
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details:not([open])")].filter((one) => !one.closest("#trials"));
    for (const one of folded) one.open = true;
  });
  addEventListener("afterprint", () => { for (const one of folded) one.open = false; });
})();
