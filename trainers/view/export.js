// Builds an episode of an exported file when it is unfolded. Until then its markup is the text of a <noscript>, which costs a
// browser nothing; one that runs no scripts has built it while it read the file.
"use strict";

const groups = [...document.querySelectorAll("details.group")];
const markup = new Map(groups.map((group) => [group, group.querySelector("noscript").textContent]));
const texts = new Map();

function build(group) {
  const kept = group.querySelector(":scope > noscript");
  if (kept) kept.replaceWith(...new DOMParser().parseFromString(kept.textContent, "text/html").body.childNodes);
}

function unfoldNamed() {
  const named = /^(?:episode-|e)(\d+)/.exec(location.hash.slice(1));
  const group = named && document.getElementById(`episode-${named[1]}`);
  if (!group) return;
  build(group);
  group.open = true;
  group.querySelector("summary").focus();
  document.getElementById(location.hash.slice(1))?.scrollIntoView();
}

function textOf(group) {
  if (!texts.has(group)) {
    const whole = group.querySelector("summary").textContent + markup.get(group).replace(/<[^>]*>/g, " ");
    texts.set(group, whole.toLowerCase());
  }
  return texts.get(group);
}

function escaped(text) {
  const names = { "&": "&amp;", "<": "&lt;", ">": "&gt;", "'": "&#39;", '"': "&#34;" };
  return text.replace(/[&<>'"]/g, (one) => names[one]);
}

function find(asked) {
  const words = escaped(asked.toLowerCase()).split(/\s+/).filter(Boolean);
  for (const group of groups) group.hidden = !words.every((word) => textOf(group).includes(word));
  for (const link of document.querySelectorAll(".episodes tbody a")) {
    link.closest("tr").hidden = document.getElementById(link.hash.slice(1)).hidden;
  }
  const left = groups.filter((group) => !group.hidden).length;
  document.getElementById("found").textContent = words.length ? `${left} of ${groups.length}` : "";
}

document.addEventListener("toggle", (event) => {
  if (event.target.matches("details.group[open]")) build(event.target);
}, true);
window.addEventListener("hashchange", unfoldNamed);
document.getElementById("words-line").hidden = false;
document.getElementById("words").addEventListener("input", (event) => find(event.target.value));
groups.filter((group) => group.open).forEach(build);
unfoldNamed();
