"use strict";
(() => {
  const root = document.documentElement;
  root.classList.add("js");
  const say = (figure, text) => { const out = figure.querySelector("figcaption"); if (out) out.textContent = text; };
  document.querySelectorAll(".grid").forEach((grid) => {
    grid.addEventListener("click", (event) => { const cell = event.target.closest("li"); if (cell) say(grid.parentNode, cell.title); });
  });
  document.querySelectorAll("figure.swim").forEach((figure) => {
    const svg = figure.querySelector(".lanes"), ticks = figure.querySelectorAll(".ticks");
    const until = Number(svg.dataset.until), origin = svg.dataset.origin, height = svg.viewBox.baseVal.height;
    const focus = svg.dataset.focus.split(" ").map(Number), room = Math.max(until * 0.02, 0.05);
    const start = origin ? Date.parse(origin.endsWith("Z") ? origin : origin + "Z") : NaN;
    const marks = [...svg.querySelectorAll(".mark")].sort((a, b) => a.dataset.at - b.dataset.at);
    let from = focus[0], width = Math.max(focus[1] - focus[0], 1e-3), chosen = -1;
    const clock = (at) => {
      if (Number.isNaN(start)) return at.toFixed(2) + " s";
      const iso = new Date(start + at * 1000).toISOString();
      return width > 172800 ? iso.slice(5, 16).replace("T", " ") : width > 600 ? iso.slice(11, 19) : iso.slice(11, width > 5 ? 21 : 23);
    };
    const draw = () => {
      width = Math.min(Math.max(width, Math.max(until / 20000, 0.01)), until + 2 * room);
      from = Math.min(Math.max(from, -room), until + room - width);
      svg.setAttribute("viewBox", `${from} 0 ${width} ${height}`);
      ticks.forEach((row) => { const n = row.children.length - 1; [...row.children].forEach((one, i) => { one.textContent = clock(from + width * i / n); }); });
    };
    const zoom = (by, at) => { const w = width * by; from = at - (at - from) * (w / width); width = w; draw(); };
    const show = (from_, until_) => { width = until_ - from_; from = from_; draw(); };
    const pick = (index) => {
      if (chosen >= 0) marks[chosen].classList.remove("chosen");
      chosen = (index + marks.length) % marks.length;
      const mark = marks[chosen], at = Number(mark.dataset.at);
      mark.classList.add("chosen");
      if (at < from || at > from + width) { from = at - width / 2; draw(); }
      const plot = figure.querySelector(".plot"), top = Number(mark.dataset.y);
      if (top < plot.scrollTop || top > plot.scrollTop + plot.clientHeight - 40) plot.scrollTop = top - plot.clientHeight / 2;
      say(figure, mark.querySelector("title").textContent);
    };
    const act = {
      in: () => zoom(0.5, from + width / 2), out: () => zoom(2, from + width / 2),
      left: () => { from -= width / 4; draw(); }, right: () => { from += width / 4; draw(); },
      all: () => show(-room, until + room), failure: () => show(focus[0], focus[1]),
      next: () => { if (marks.length) pick(chosen + 1); }, previous: () => { if (marks.length) pick(chosen < 0 ? -1 : chosen - 1); },
    };
    const keys = { "+": "in", "=": "in", "-": "out", ArrowLeft: "left", ArrowRight: "right", 0: "all", f: "failure", n: "next", p: "previous" };
    figure.querySelector(".tools").addEventListener("click", (event) => { const one = event.target.closest("button"); if (one) act[one.dataset.do](); });
    figure.querySelector(".plot").addEventListener("keydown", (event) => {
      const name = keys[event.key];
      if (name && !event.ctrlKey && !event.metaKey && !event.altKey) { event.preventDefault(); act[name](); }
    });
    const place = (event) => { const box = svg.getBoundingClientRect(); return from + width * (event.clientX - box.left) / box.width; };
    svg.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.shiftKey) return;
      event.preventDefault(); zoom(event.deltaY + event.deltaX > 0 ? 1.25 : 0.8, place(event));
    }, { passive: false });
    svg.addEventListener("dblclick", (event) => zoom(0.4, place(event)));
    let drag = null;
    svg.addEventListener("pointerdown", (event) => { drag = { x: event.clientX, from, moved: false }; });
    svg.addEventListener("pointermove", (event) => {
      if (!drag || !event.buttons) return;
      const shift = event.clientX - drag.x;
      if (Math.abs(shift) > 3) drag.moved = true;
      from = drag.from - shift * width / svg.getBoundingClientRect().width; draw();
    });
    window.addEventListener("pointerup", () => { drag = null; });
    svg.addEventListener("click", (event) => {
      const mark = event.target.closest(".mark"), lane = event.target.closest(".lane");
      if (mark) pick(marks.indexOf(mark)); else if (lane) say(figure, lane.querySelector("title").textContent);
    });
    draw();
  });
})();
