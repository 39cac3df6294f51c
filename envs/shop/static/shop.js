// Pages are swapped without loading a new document; without this file, everything works as plain links and forms.
const show = async (address, options) => {
  const answer = await fetch(address, {credentials: "same-origin", ...options});
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  document.body.replaceWith(page.body);
  document.title = page.title;
  if (answer.url !== location.href) history.pushState(null, "", answer.url);
  scrollTo(0, 0);
  document.getElementById("main").focus({preventScroll: true});
};

document.addEventListener("click", event => {
  const link = event.target.closest("a[href]");
  const plain = !event.ctrlKey && !event.metaKey && !event.shiftKey && event.button === 0;
  if (!link || !plain || link.origin !== location.origin || link.hash) return;
  event.preventDefault();
  show(link.href);
});

document.addEventListener("submit", event => {
  event.preventDefault();
  const form = event.target;
  const fields = new URLSearchParams(new FormData(form, event.submitter));
  if (form.method === "post") show(form.action, {method: "POST", body: fields});
  else show(form.action + "?" + fields);
});

addEventListener("popstate", () => location.reload());
