// What the pages do beyond plain HTML: keys, and looking again at what is being written. Nothing here is needed.
"use strict";

const rows = () => [...document.querySelectorAll("[data-row], main .step[id]")];

function chosen() {
  const at = document.activeElement && document.activeElement.closest("[data-row], .step[id]");
  return at ? rows().indexOf(at) : -1;
}

function choose(index) {
  const row = rows()[Math.max(0, Math.min(index, rows().length - 1))];
  if (!row) return;
  (row.matches(".step") ? row : row.querySelector("a") || row).focus();
  row.scrollIntoView({ block: "nearest" });
}

function follow(selector) {
  const link = document.querySelector(selector);
  if (link) link.click();
  return Boolean(link);
}

const KEYS = {
  j: () => choose(chosen() + 1),
  k: () => choose(chosen() - 1),
  n: () => follow('main a[rel="next"]') || choose(chosen() + 1),
  p: () => follow('main a[rel="prev"]') || choose(chosen() - 1),
  u: () => follow('a[rel="up"]'),
  w: () => {
    const step = rows()[chosen()] || document.querySelector(".step[id]");
    const link = step && step.querySelector("a.if");
    if (link) link.click();
  },
  e: () => {
    const all = [...document.querySelectorAll("main details")];
    const open = all.some((one) => !one.open);
    all.forEach((one) => { one.open = open; });
  },
  "/": () => { const box = document.getElementById("search"); if (box) box.focus(); },
  "?": () => document.getElementById("help-link").click(),
};

document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input, textarea, select");
  if (typing && event.key === "Escape") typing.blur();
  if (typing || event.ctrlKey || event.metaKey || event.altKey || !(event.key in KEYS)) return;
  event.preventDefault();
  KEYS[event.key]();
});

function busy() {
  const at = document.activeElement;
  const inside = at && at.closest("main") && at.matches("input, textarea, select, button");
  return inside || String(document.getSelection()) !== "" || document.hidden;
}

async function again() {
  const seconds = Number(document.body.dataset.live || 0);
  if (!seconds) return;
  await new Promise((wake) => setTimeout(wake, 1000 * seconds));
  try {
    if (!busy()) {
      const answer = await fetch(location.href, { credentials: "same-origin" });
      if (answer.ok) renew(new DOMParser().parseFromString(await answer.text(), "text/html"));
    }
  } catch {
    // the server is gone; it is asked again, since it may be started anew
  }
  again();
}

function renew(page) {
  const focused = chosen();
  const open = [...document.querySelectorAll("main details")].map((one) => one.open);
  const ticked = new Set([...document.querySelectorAll("main input:checked")].map((one) => one.value));
  const at = window.scrollY;
  document.getElementById("main").replaceWith(page.getElementById("main"));
  const details = [...document.querySelectorAll("main details")];
  if (details.length === open.length) details.forEach((one, index) => { one.open = open[index]; });
  document.querySelectorAll('main input[type="checkbox"]').forEach((one) => { one.checked = ticked.has(one.value); });
  if (focused >= 0) choose(focused);
  window.scrollTo(0, at);
  document.body.dataset.live = page.body.dataset.live || "";
}

again();
