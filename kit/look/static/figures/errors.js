// Figure 09.2, interactive: one of two vectors turns, and the formulas give the errors of three feature maps.
AnswersBack.figure("errors", {
  title: "drag y away from x, or use the sliders, and see which errors rise and which fall",
  picture: "Two vectors, the lengths of their sum and difference, and the relative errors of three feature maps",
  height: (width) => (width < 600 ? 374 : 330),
  controls: {
    angle: { label: "angle between x and y", min: 0, max: 180, step: 1, value: 60, unit: "°" },
    F: { label: "features F", values: [16, 32, 64, 128, 256, 512, 1024, 4096, 16384], value: 128 },
    x: { label: "length of x", min: 0.1, max: 3, step: 0.1, value: 1 },
    y: { label: "length of y", min: 0.1, max: 3, step: 0.1, value: 1 },
  },

  /** Root of MSE/SM² from lengths x, y and an angle in degrees, in any width d. */
  compute({ angle, x, y, F }) {
    const half = (angle * Math.PI) / 360, m = F / 2;
    const plus = (x - y) ** 2 + 4 * x * y * Math.cos(half) ** 2;
    const minus = (x - y) ** 2 + 4 * x * y * Math.sin(half) ** 2;
    return {
      plus, minus, weight: Math.exp((plus - minus) / 4),
      trigonometric: Math.sqrt(2 / m) * Math.sinh(minus / 2),
      hyperbolic: Math.sqrt(2 / m) * Math.sinh(plus / 2),
      positive: Math.sqrt(Math.expm1(plus) / F),
    };
  },

  MAPS: [["trigonometric", 0, ""], ["hyperbolic", 1, "8 4"], ["positive", 2, "8 3 2 3"]],

  centre: (width) => (width < 600 ? [width / 2, 92, 62] : [110, 150, 90]),

  draw(state, found, width, height) {
    const [cx, cy, reach] = this.centre(width), narrow = width < 600;
    const scale = reach / Math.max(state.x, state.y, 1);
    const turn = (state.angle * Math.PI) / 180;
    const tip = [scale * state.y * Math.cos(turn), -scale * state.y * Math.sin(turn)];
    const arrow = (dx, dy, ink, name, lift = 0) => {
      const size = Math.hypot(dx, dy) || 1, ux = dx / size, uy = dy / size;
      return `<path class="line ${ink}" d="M${cx} ${cy}l${dx} ${dy}"/>
        <path class="${ink.replace("s", "f")}" d="M${cx + dx + 3 * ux} ${cy + dy + 3 * uy}
          l${-12 * ux - 5 * uy} ${-12 * uy + 5 * ux}l${10 * uy} ${-10 * ux}z"/>
        <text x="${cx + dx + 14 * ux}" y="${cy + dy + 14 * uy + 5 - lift}" text-anchor="middle">${name}</text>`;
    };
    const across = scale * state.x, degrees = Array.from({ length: 91 }, (_, i) => 2 * i);
    const vectors = `<path class="grid line thin" d="M${cx + across} ${cy}L${cx + tip[0]} ${cy + tip[1]}"/>
      ${arrow(across, 0, "s6", "x")}${arrow(...tip, "s3", "y", 14)}
      <text x="${cx - 70 * narrow}" y="${cy + 34}" text-anchor="middle">‖x + y‖ = ${Math.sqrt(found.plus).toFixed(2)}</text>
      <text x="${cx + 70 * narrow}" y="${cy + 54 - 20 * narrow}" text-anchor="middle">‖x − y‖ = ${Math.sqrt(found.minus).toFixed(2)}</text>`;
    const box = narrow ? [50, 164, width - 74, 140] : [290, 34, width - 318, 196];
    const handle = `<circle class="handle" cx="${cx + tip[0]}" cy="${cy + tip[1]}" r="26" fill="transparent"/>`;
    const plot = AnswersBack.frame(box, {
      x: [0, 180], y: [1e-3, 1e3], logy: true, xticks: [[0, "0°"], [90, "90°"], [180, "180°"]],
      yticks: [[1e-3, "0.001"], [0.01, "0.01"], [0.1, "0.1"], [1, "1"], [10, "10"], [100, "100"], [1e3, "1,000"]],
      xlabel: "angle", ylabel: "relative error; dotted: of the answer 0",
    });
    const along = degrees.map((angle) => this.compute({ ...state, angle }));
    plot.line([0, 180], [1, 1], "s6", "2 4");
    plot.line([state.angle, state.angle], [1e-3, 1e3], "s6 thin");
    for (const [name, ink, dash] of this.MAPS) {
      plot.line(degrees, along.map((error) => Math.max(error[name], 1e-9)), `s${ink}`, dash);
      plot.dot(state.angle, Math.max(found[name], 1e-9), `f${ink}`);
    }
    const lines = this.MAPS.map(([name, ink, dash], i) =>
      [`s${ink}`, dash, name, narrow ? [0, 0.4, 0.74][i] * width : 240 + [0, 145, 265][i]]);
    const key = AnswersBack.legend(lines, height - (narrow ? 12 : 34), narrow ? 18 : 26);
    return vectors + plot.svg() + key + handle;
  },

  words({ angle, F }, found) {
    const say = AnswersBack.say, order = this.MAPS.map(([name]) => name);
    order.sort((a, b) => found[a] - found[b]);
    const [best, next, last] = order.map((name) => `${name} ones ${say(found[name])}`);
    const lost = order.filter((name) => found[name] >= 1).length;
    return `At ${angle}° x\u00a0+\u00a0y has the length ${say(Math.sqrt(found.plus))}, x\u00a0−\u00a0y the length ` +
      `${say(Math.sqrt(found.minus))}, and the weight is ${say(found.weight)}. With ${F.toLocaleString("en")} ` +
      `features ${best.replace(" ones", " features have a relative error of")}, ${next}, and ${last}. ` +
      ["All three are better than the answer 0.", "One of the three is no better than the answer 0.",
        "Two of the three are no better than the answer 0.", "None is better than the answer 0."][lost];
  },

  /** y points to the finger or the mouse. */
  drag(px, py, width, moved) {
    const [cx, cy, reach] = this.centre(width);
    if (Math.hypot(px - cx, py - cy) > 1.5 * reach) return;
    moved.angle(Math.round((Math.abs(Math.atan2(cy - py, px - cx)) * 180) / Math.PI));
  },
});
