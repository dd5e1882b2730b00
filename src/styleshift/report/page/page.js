"use strict";
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];

  // light and dark: the system's choice until the button is pressed
  const root = document.documentElement;
  const theme = document.getElementById("theme");
  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  const remembered = () => { try { return localStorage.getItem("styleshift-theme"); } catch { return null; } };
  const isDark = () => root.dataset.theme ? root.dataset.theme === "dark" : prefersDark.matches;
  const showTheme = () => {
    theme.textContent = isDark() ? "Light" : "Dark";
    theme.setAttribute("aria-label", `Switch to ${isDark() ? "light" : "dark"} colours`);
    theme.setAttribute("aria-pressed", String(root.dataset.theme !== undefined));
  };
  if (remembered()) root.dataset.theme = remembered();
  if (/^#(light|dark)$/.test(location.hash)) root.dataset.theme = location.hash.slice(1);
  theme.hidden = false;
  theme.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    try { localStorage.setItem("styleshift-theme", root.dataset.theme); } catch { /* a page from a file may not keep it */ }
    showTheme();
  });
  prefersDark.addEventListener("change", showTheme);
  showTheme();

  // values: what a mark says when it is pointed at, or stepped to with the arrow keys
  const tip = document.getElementById("tip");
  all("svg.chart title").forEach((title) => { title.parentNode.dataset.tip = title.textContent; title.remove(); });
  const show = (mark) => {
    all(".pointed").forEach((other) => other.classList.remove("pointed"));
    tip.hidden = !mark;
    if (!mark) return;
    mark.classList.add("pointed");
    tip.textContent = mark.dataset.tip;
    const box = mark.getBoundingClientRect();
    const left = Math.min(Math.max(box.x + box.width / 2 - tip.offsetWidth / 2, 8), innerWidth - tip.offsetWidth - 8);
    const above = box.y - tip.offsetHeight - 8;
    tip.style.left = `${left}px`;
    tip.style.top = `${above > 8 ? above : box.bottom + 8}px`;
  };
  all("svg.chart").forEach((chart) => {
    const marks = () => all("[data-tip]", chart).filter((mark) => mark.dataset.tip && !mark.closest(".hidden"));
    let place = -1;
    chart.addEventListener("pointerover", (event) => show(event.target.closest("[data-tip]")));
    chart.addEventListener("pointerleave", () => show(null));
    chart.addEventListener("blur", () => { place = -1; show(null); });
    chart.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (event.key === "Escape") { show(null); return; }
      const shown = marks();
      if (!step || !shown.length) return;
      event.preventDefault();
      place = (place + step + shown.length) % shown.length;
      show(shown[place]);
    });
  });
  addEventListener("scroll", () => show(null), { passive: true });

  // legends hide what they name
  all("[data-hides]").forEach((button) => button.addEventListener("click", () => {
    const hide = button.getAttribute("aria-pressed") === "true";
    button.setAttribute("aria-pressed", String(!hide));
    all("[data-series]", button.closest("figure"))
      .filter((part) => part.dataset.series === button.dataset.hides)
      .forEach((part) => part.classList.toggle("hidden", hide));
  }));

  // figures with several views: one at a time
  all(".views.switched").forEach((views) => {
    const each = all(".view", views);
    if (each.length < 2) return;
    const bar = document.createElement("div");
    bar.className = "switch";
    bar.setAttribute("role", "group");
    bar.setAttribute("aria-label", "View");
    const choose = (chosen) => each.forEach((view, place) => {
      view.hidden = view !== chosen;
      bar.children[place].setAttribute("aria-pressed", String(view === chosen));
    });
    each.forEach((view) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = view.dataset.view;
      button.addEventListener("click", () => choose(view));
      bar.append(button);
    });
    views.before(bar);
    choose(each[0]);
  });

  // on paper nothing is folded away
  addEventListener("beforeprint", () => all("details.look").forEach((fold) => { fold.open = true; }));
})();
