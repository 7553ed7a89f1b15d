// What the interactive figures share: controls, frames of plots, colours, and the sentences that say
// what is shown. A figure gives `AnswersBack.figure` its name, its controls, and three functions:
// `compute` from inputs to numbers, `draw` from numbers to SVG, `words` to sentences.
window.AnswersBack ??= (() => {
  // Those of performer_course.teaching.figures; black is the colour of the text, light or dark.
  const COLORS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"];
  const style = document.createElement("style");
  style.textContent = `
    .answers-back { border: 1px solid var(--pst-color-border, #888); border-radius: 0.4rem;
      padding: 0.7rem 0.9rem; margin: 0.5rem 0 1.2rem; color: var(--pst-color-text-base, CanvasText);
      &:empty { display: none } p { margin: 0 0 0.5rem } .title { font-weight: 600 } .words { min-height: 4.5em }
      input { accent-color: var(--accent, #00528a) }
      .picture { display: block; width: 100%; user-select: none }
      .controls { display: grid; gap: 0.3rem 1.2rem; margin: 0.4rem 0 0.6rem;
        grid-template-columns: repeat(auto-fit, minmax(min(100%, 16rem), 1fr)) }
      label { display: grid; grid-template-columns: 1fr auto; margin: 0 }
      [type=range] { grid-column: 1 / 3; width: 100%; min-height: 1.5rem; margin: 0 }
      label.tick { display: flex; align-items: center; gap: 0.5rem } [type=checkbox] { width: 1.5rem; height: 1.5rem; flex: none }
      button { font: inherit; padding: 0.25rem 0.9rem; border: 1px solid currentColor;
        border-radius: 0.3rem; background: transparent; color: inherit; place-self: center start }
      text { fill: currentColor; font-size: 14px } .band { opacity: 0.45 }
      .grid { stroke: currentColor; opacity: 0.2 } .line { fill: none; stroke-width: 2.5; stroke-linejoin: round } .thin { stroke-width: 1.2 }
      @media (max-width: 600px) { padding: 0.6rem 0.5rem; font-size: 1rem; line-height: 1.35; /* in one screen of a phone */
        .controls { grid-template-columns: 1fr 1fr; gap: 0.3rem 0.9rem; align-items: end; font-size: 0.9rem }
        label.tick { grid-column: 1 / 3 } button { padding-inline: 0.5rem } } }
    html[data-theme=dark] .answers-back .picture { filter: brightness(1.3) }
    ${COLORS.map((color, i) => [color, "currentColor"][Number(i === 6)]).map((ink, i) =>
      `.answers-back .s${i} { stroke: ${ink} } .answers-back .f${i} { fill: ${ink} }`).join("")}`;
  document.head.append(style);

  /** A number to three digits: 1,230, 8.39 million, 0.00012. Below 1e-9 it is 0. */
  const say = (x) => {
    const long = x >= 1e6 ? { notation: "compact", compactDisplay: "long" } : {};
    return (Math.abs(x) < 1e-9 ? 0 : x).toLocaleString("en", { maximumSignificantDigits: 3, ...long });
  };

  /** `count` standard normal numbers from a seed: mulberry32, then Box and Muller. */
  function normals(seed, count) {
    let a = seed | 0;
    const uniform = () => {
      a = (a + 0x6d2b79f5) | 0;
      let t = Math.imul(a ^ (a >>> 15), 1 | a);
      t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
      return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
    };
    const found = [];
    while (found.length < count) {
      const length = Math.sqrt(-2 * Math.log(1 - uniform())), turn = 2 * Math.PI * uniform();
      found.push(length * Math.cos(turn), length * Math.sin(turn));
    }
    return found.slice(0, count);
  }

  const square = (list) => list.reduce((sum, x) => sum + x * x, 0);

  /** `count` vectors of length 1 and width d, made of the first of these numbers. */
  const units = (numbers, count, d) => Array.from({ length: count }, (_, i) => {
    const row = numbers.slice(i * d, (i + 1) * d), size = Math.hypot(...row);
    return row.map((x) => x / size);
  });

  /** Which line is what, in one row at the height y: [class, dash, name, x] of each. */
  const legend = (lines, y, long = 22) => lines.map(([ink, dash, name, x]) =>
    `<path class="line ${ink}" stroke-dasharray="${dash}" d="M${x} ${y}h${long}"/>
      <text x="${x + long + 4}" y="${y + 5}">${name}</text>`).join("");

  /** A plot in `box` [left, top, width, height]; ticks are values, or [value, label]. */
  function frame([left, top, width, height], { x, y, logx, logy, xticks, yticks, xlabel, ylabel }) {
    const part = (v, [a, b], log) => (log ? Math.log(v / a) / Math.log(b / a) : (v - a) / (b - a));
    const X = (v) => width * part(v, x, logx), Y = (v) => height * (1 - part(v, y, logy));
    const points = (xs, ys) => xs.map((v, i) => `${X(v).toFixed(1)},${Y(ys[i]).toFixed(1)}`);
    const text = (tx, ty, said, anchor = "middle") =>
      `<text x="${tx}" y="${ty}" text-anchor="${anchor}">${String(said).replace(/^-/, "−")}</text>`;
    const inside = [], around = [], over = [];
    for (const [v, said = v] of xticks.map((tick) => [tick].flat())) {
      around.push(`<path class="grid" d="M${left + X(v)} ${top}v${height}"/>`);
      around.push(text(left + X(v), top + height + 18, said));
    }
    for (const [v, said = v] of yticks.map((tick) => [tick].flat())) {
      around.push(`<path class="grid" d="M${left} ${top + Y(v)}h${width}"/>`);
      around.push(text(left - 6, top + Y(v) + 5, said, "end"));
    }
    around.push(text(left + width / 2, top + height + 38, xlabel ?? ""));
    around.push(text(Math.max(4, left - 42), top - 10, ylabel ?? "", "start"));
    return {
      X: (v) => left + X(v), Y: (v) => top + Y(v),
      line: (xs, ys, ink, dash = "") => inside.push(
        `<path class="line ${ink}" stroke-dasharray="${dash}" d="M${points(xs, ys).join("L")}"/>`),
      band: (xs, low, high, ink) => inside.push(`<path class="band ${ink}" d="M${
        [...points(xs, low), ...points(xs, high).reverse()].join("L")}Z"/>`),
      dot: (v, w, ink) => over.push(Y(w) < 0 || Y(w) > height // outside the frame: an arrow
        ? `<text class="${ink}" x="${left + X(v)}" y="${top + (Y(w) < 0 ? 14 : height - 3)}" text-anchor="middle">${"▲▼"[+(Y(w) > 0)]}</text>`
        : `<circle class="${ink}" r="5" cx="${left + X(v)}" cy="${top + Y(w)}"/>`),
      svg: () => `${around.join("")}<svg x="${left}" y="${top}" width="${width}" height="${height}"
        overflow="hidden">${inside.join("")}</svg>${over.join("")}`,
    };
  }

  function mount(home, spec) {
    home.setAttribute("role", "group");
    home.setAttribute("aria-label", spec.title);
    home.innerHTML = `<p class="title">Try it: ${spec.title}</p>
      <svg class="picture" role="img" aria-label="${spec.picture}"></svg>
      <div class="controls"></div><p class="words" aria-live="polite"></p>`;
    const svg = home.querySelector("svg"), words = home.querySelector(".words");
    const state = {}, moved = {};
    let waiting = 0;
    const show = () => {
      waiting = 0;
      const width = Math.max(300, svg.clientWidth || 640);
      const height = spec.height(width), numbers = spec.compute(state);
      svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
      svg.innerHTML = spec.draw(state, numbers, width, height);
      words.textContent = spec.words(state, numbers);
    };
    const soon = () => (waiting ||= requestAnimationFrame(show));
    for (const [name, { label, press, values, min, max, step, value, unit = "" }] of Object.entries(spec.controls)) {
      state[name] = value;
      const made = home.querySelector(".controls").appendChild(document.createElement(press ? "button" : "label"));
      made.textContent = press ?? "";
      if (press) {
        made.type = "button";
        made.addEventListener("click", () => soon(state[name]++));
      } else if (typeof value === "boolean") {
        made.className = "tick";
        made.innerHTML = `<input type="checkbox" ${value ? "checked" : ""}> ${label}`;
        made.addEventListener("change", ({ target }) => soon((state[name] = target.checked)));
      } else {
        const [from, to, by] = values ? [0, values.length - 1, 1] : [min, max, step];
        made.innerHTML = `${label} <output></output>
          <input type="range" min="${from}" max="${to}" step="${by}">`;
        const slider = made.querySelector("input");
        moved[name] = (next) => {
          state[name] = values ? values[next] : next;
          slider.value = next;
          const said = state[name].toLocaleString("en") + unit;
          made.querySelector("output").textContent = said;
          slider.setAttribute("aria-valuetext", said);
          soon();
        };
        slider.addEventListener("input", () => moved[name](Number(slider.value)));
        moved[name](values ? values.indexOf(value) : value);
      }
    }
    const drag = ({ buttons, clientX, clientY }) => { // a finger, or a mouse with its button pressed
      const { left, top, width } = svg.getBoundingClientRect();
      if (buttons) spec.drag?.(clientX - left, clientY - top, width, moved);
    };
    svg.addEventListener("touchstart", (on) => on.target.matches(".handle") && on.preventDefault(), { passive: false }); // or the page scrolls
    for (const type of ["pointerdown", "pointermove"]) svg.addEventListener(type, drag);
    if (spec.drag) svg.style.touchAction = "pan-y";
    new ResizeObserver(soon).observe(svg);
    show();
  }

  const figures = {};
  const figure = (name, spec) => {
    document.querySelectorAll(`[data-answers-back="${name}"]:empty`).forEach((home) => mount(home, spec));
    figures[name] = spec;
  };
  return { COLORS, figure, figures, frame, legend, normals, say, square, units };
})();
