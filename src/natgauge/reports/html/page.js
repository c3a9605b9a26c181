// SPDX-License-Identifier: Apache-2.0
// Shows the value under the pointer or finger. All these values are in the table below the figure, too.
(() => {
  const tip = document.getElementById("tip");
  const hide = () => { tip.hidden = true; };
  const show = (event) => {
    const mark = event.target.closest?.(".chart [aria-label][aria-roledescription]");
    const kind = mark?.getAttribute("aria-roledescription");
    if (!["point", "bar", "tick", "rule", "rule mark"].includes(kind)) { hide(); return; }
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
  // A figure leads to a result that is folded; not every browser unfolds it.
  const unfold = () => {
    const aim = document.getElementById(location.hash.slice(1));
    for (let fold = aim?.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
    aim?.scrollIntoView();
  };
  addEventListener("hashchange", unfold);
  addEventListener("DOMContentLoaded", unfold);
  // Paper has no clicks: doubts are printed in full; the evidence, which may be many pages, stays folded.
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("#answers details:not([open])")];
    for (const one of folded) one.open = true;
  });
  addEventListener("afterprint", () => { for (const one of folded) one.open = false; });
})();
