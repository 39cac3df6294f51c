// Runs in an isolated world of each page: it sees the page's elements, and the page's scripts cannot see it.
(() => {
  const state = {changes: 0};
  new MutationObserver(() => { state.changes += 1; })
    .observe(document, {subtree: true, childList: true, attributes: true, characterData: true});
  const FIELDS = "input, textarea, select";
  const FOCUSABLE = "a[href], button, input, textarea, select, summary, [tabindex], [contenteditable]";

  // Two looks, each after two turns of the event loop: [whether they saw the same, number of elements].
  const turns = () => new Promise(done => setTimeout(() => setTimeout(done, 0), 0));
  const still = async () => {
    await turns();
    const before = state.changes;
    await turns();
    return [state.changes === before, document.getElementsByTagName("*").length];
  };

  // Where to click on an element, and why that would not work.
  const place = element => {
    if (!element || !element.isConnected) return {problem: "is gone from the page"};
    if (element.nodeType !== 1) element = element.parentElement;
    if (element.disabled) return {problem: "is disabled"};
    if (element instanceof HTMLOptionElement) return {problem: "is an option of a list: select it there"};
    element.scrollIntoView({block: "nearest", inline: "nearest", behavior: "instant"});
    const box = [...element.getClientRects()].find(r => r.width > 0 && r.height > 0);
    if (!box) return {problem: "is not visible"};
    const x = Math.min(Math.max(box.x + box.width / 2, 1), innerWidth - 1);
    const y = Math.min(Math.max(box.y + box.height / 2, 1), innerHeight - 1);
    let top = document.elementFromPoint(x, y);
    while (top && top.shadowRoot && top.shadowRoot.elementFromPoint(x, y) !== top)
      top = top.shadowRoot.elementFromPoint(x, y);
    const label = element.labels && [...element.labels].some(l => l.contains(top));
    let up = top;
    while (up && up !== element) up = up.parentNode || up.host;
    if (!up && !label) return {problem: "is covered by something else"};
    return {x, y};
  };

  const setValue = (element, value) => {
    const kind = element instanceof HTMLTextAreaElement ? HTMLTextAreaElement : HTMLInputElement;
    Object.getOwnPropertyDescriptor(kind.prototype, "value").set.call(element, value);
    element.dispatchEvent(new Event("input", {bubbles: true}));
    element.dispatchEvent(new Event("change", {bubbles: true}));
  };

  // Make a field ready for typed text: "type" it, or it is "done".
  const ready = (element, text) => {
    if (!element || !element.isConnected) return {problem: "is gone from the page"};
    if (element.disabled || element.readOnly) return {problem: "cannot be changed"};
    const typed = ["text", "search", "email", "url", "tel", "password", "number"];
    if (element.isContentEditable) {
      element.focus();
      document.getSelection().selectAllChildren(element);
      return {type: true};
    }
    if (!(element instanceof HTMLInputElement || element instanceof HTMLTextAreaElement))
      return {problem: "is not a text field"};
    if (element instanceof HTMLInputElement && !typed.includes(element.type)) {
      if (["checkbox", "radio", "file", "button", "submit", "image", "reset"].includes(element.type))
        return {problem: "is not a text field"};
      element.focus();
      setValue(element, text);
      return {type: false};
    }
    element.focus();
    element.select();
    return {type: true};
  };

  const choose = (element, wanted) => {
    if (element instanceof HTMLOptionElement) element = element.closest("select");
    if (!(element instanceof HTMLSelectElement)) return {problem: "is not a list to select from"};
    if (element.disabled) return {problem: "is disabled"};
    const said = o => o.label.trim().toLowerCase();
    const all = [...element.options];
    const option = all.find(o => said(o) === wanted.trim().toLowerCase()) || all.find(o => o.value === wanted);
    if (!option) return {problem: "has no such option. Options: " + all.slice(0, 30).map(o => o.label.trim()).join(", ")};
    if (option.disabled) return {problem: "has that option disabled"};
    if (!option.selected) {
      if (!element.multiple) element.value = option.value;
      option.selected = true;
      element.dispatchEvent(new Event("input", {bubbles: true}));
      element.dispatchEvent(new Event("change", {bubbles: true}));
    }
    return {};
  };

  // What a person typed or chose and did not send yet, where the focus is, how far the page was scrolled.
  const forms = () => {
    const changed = [];
    [...document.querySelectorAll(FIELDS)].forEach((field, i) => {
      if (field.type === "file") return;
      if (field instanceof HTMLSelectElement) {
        const chosen = [...field.options].map(o => o.selected);
        if ([...field.options].some(o => o.selected !== o.defaultSelected)) changed.push([i, chosen]);
      } else if (field.type === "checkbox" || field.type === "radio") {
        if (field.checked !== field.defaultChecked) changed.push([i, field.checked]);
      } else if (field.value !== field.defaultValue) changed.push([i, field.value]);
    });
    const focus = [...document.querySelectorAll(FOCUSABLE)].indexOf(document.activeElement);
    return {changed, focus, scroll: [scrollX, scrollY], storage: stored()};
  };

  // [localStorage, sessionStorage] as objects; null where there is nothing.
  const STORES = ["localStorage", "sessionStorage"];
  const stored = () => STORES.map(name => {
    try { return window[name].length ? {...window[name]} : null; } catch { return null; }
  });
  const keep = saved => STORES.forEach((name, i) => {
    try {
      window[name].clear();
      Object.entries(saved[i] || {}).forEach(([key, value]) => window[name].setItem(key, value));
    } catch { /* a page without storage */ }
  });

  const refill = saved => {
    const fields = [...document.querySelectorAll(FIELDS)];
    for (const [i, value] of saved.changed) {
      const field = fields[i];
      if (!field) continue;
      if (Array.isArray(value)) value.forEach((on, k) => { if (field.options[k]) field.options[k].selected = on; });
      else if (typeof value === "boolean") field.checked = value;
      else field.value = value;
    }
    const focused = document.querySelectorAll(FOCUSABLE)[saved.focus];
    if (focused) focused.focus({preventScroll: true});
    scrollTo(...saved.scroll);
  };

  const scroll = direction => {
    const before = scrollY, page = innerHeight * 0.8;
    const to = {up: scrollY - page, down: scrollY + page, top: 0, bottom: document.documentElement.scrollHeight};
    scrollTo({top: to[direction], behavior: "instant"});
    return scrollY !== before;
  };

  const text = () => document.body ? document.body.innerText : "";
  globalThis.turnwise = {still, place, ready, choose, forms, refill, keep, scroll, text};
})()
