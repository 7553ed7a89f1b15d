// Figure 10.2, interactive: what two orders of multiplication cost, as areas, and the length where they cross.
AnswersBack.figure("brackets", {
  title: "lengthen the text, and see when the brackets on the right become cheaper",
  picture: "The multiplications of exact and of linear attention, as two squares and as two lines",
  height: (width) => (width < 560 ? 366 : 310),
  controls: {
    L: {
      label: "length L", value: 256,
      values: [16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536],
    },
    m: { label: "features m", values: [16, 32, 64, 128, 256, 512, 1024], value: 256 },
    d: { label: "width d of queries and keys", values: [16, 32, 64, 128, 256], value: 64 },
    e: { label: "width e of values", values: [16, 32, 64, 128, 256], value: 64 },
    causal: { label: "causal: a token sees itself and those before it", value: false },
  },

  /** Multiplications: those of the weights or features, and those of the sums of values. */
  compute({ L, m, d, e, causal }) {
    const pairs = causal ? (L * L) / 2 : L * L;
    const scores = pairs * d, sums = pairs * e, projections = 2 * L * m * d, brackets = 2 * L * m * e;
    const exact = scores + sums, linear = projections + brackets;
    return { scores, sums, projections, brackets, exact, linear, cross: causal ? 4 * m : 2 * m };
  },

  draw(state, found, width, height) {
    const narrow = width < 560, room = narrow ? 96 : 130;
    const unit = room / Math.sqrt(Math.max(found.exact, found.linear));
    const square = (left, first, second, ink, name, title, parts, dash) => {
      const side = Math.max(1.5, unit * Math.sqrt(first + second)), cut = (side * first) / (first + second);
      const bottom = 50 + room;
      const inside = (y, said, tall) => // a name where there is room for it
        side > 90 && tall > 22 ? `<text x="${left + 6}" y="${y}">${said}</text>` : "";
      return `<text x="${left}" y="18" font-weight="600">${title}</text>
        <text x="${left}" y="37">${name}: ${AnswersBack.say(first + second)}</text>
        <rect class="f${ink} band" x="${left}" y="${bottom - side}" width="${side}" height="${cut}"/>
        <rect class="s${ink}" fill="none" stroke-width="2.5" stroke-dasharray="${dash}" x="${left}" y="${bottom - side}"
          width="${side}" height="${side}"/>
        ${inside(bottom - side + 17, parts[0], cut)}${inside(bottom - 8, parts[1], side - cut)}`;
    };
    const far = narrow ? width / 2 + 5 : 155;
    const squares =
      square(10, found.scores, found.sums, 0, "exact", "(Q Kᵀ) V", ["weights", "sum of V"], "") +
      square(far, found.projections, found.brackets, 1, "linear", "φ(Q) (φ(K)ᵀ V)", ["features", "brackets"], "8 4");
    const box = narrow ? [54, room + 90, width - 88, height - room - 138] : [370, 34, width - 400, 222];
    const lengths = this.controls.L.values, along = lengths.map((L) => this.compute({ ...state, L }));
    const both = along.flatMap(({ exact, linear }) => [exact, linear]);
    const low = Math.floor(Math.log10(Math.min(...both))), top = Math.ceil(Math.log10(Math.max(...both)));
    const ten = [low, Math.round((low + top) / 2), top];
    const plot = AnswersBack.frame(box, {
      x: [16, 65536], logx: true, y: [10 ** low, 10 ** top], logy: true,
      xticks: [[16, "16"], [256, "256"], [4096, "4,096"], [65536, "65,536"]],
      yticks: ten.map((p) => [10 ** p, (10 ** p).toLocaleString("en", { notation: "compact" })]), xlabel: "length L", ylabel: "multiplications",
    });
    plot.line(lengths, along.map(({ exact }) => exact), "s0");
    plot.line(lengths, along.map(({ linear }) => linear), "s1", "8 4");
    plot.line([found.cross, found.cross], [10 ** low, 10 ** top], "s6 thin", "2 4");
    plot.dot(state.L, found.exact, "f0");
    plot.dot(state.L, found.linear, "f1");
    const under = plot.X(found.cross), end = under > box[0] + box[2] / 2 ? "end" : "start";
    return `${squares}${plot.svg()}<text x="${under + (end === "end" ? -6 : 6)}" y="${box[1] + 16}"
      text-anchor="${end}">L = ${found.cross.toLocaleString("en")}</text>`;
  },

  words({ L, causal }, { exact, linear, cross }) {
    const say = AnswersBack.say, times = exact / linear;
    return `At L = ${L.toLocaleString("en")} exact attention takes ${say(exact)} multiplications and ` +
      `linear attention ${say(linear)}: ` +
      (times === 1 ? "the same number" : `${times > 1 ? "exact" : "linear"} attention takes ` +
        `${say(Math.max(times, 1 / times))} times as many`) +
      `. The two cross at L = ${causal ? 4 : 2}m = ${cross.toLocaleString("en")}, whatever d and e are.`;
  },
});
