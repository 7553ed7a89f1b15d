// Figure 04.3, interactive: one row of a Gram matrix, from two forms of Fourier features, beside the
// kernel, and how the error of the whole matrix falls with their number.
(() => {
  const SIZES = Array.from({ length: 11 }, (_, i) => 2 ** (i + 1)), MOST = SIZES.at(-1);
  const LINE = Array.from({ length: 41 }, (_, i) => (i - 20) / 5); // the points, as x and as y
  const PAIRS = LINE.flatMap((_, i) => LINE.map((_, j) => [i, j]));
  const FORMS = [["cosines", 0, "", "cos and sin"], ["phase", 1, "7 4", "with a phase"]];
  const bell = (i, j) => Math.exp(-((LINE[i] - LINE[j]) ** 2) / 2);
  const root = (entry) => Math.sqrt(PAIRS.reduce((sum, [i, j]) => sum + entry(bell(i, j), i, j), 0) / PAIRS.length);
  const PREDICTED = {
    cosines: SIZES.map((size) => root((k) => (1 - k * k) ** 2 / size)),
    phase: SIZES.map((size) => root((k) => (1 + k ** 4 / 2 - k * k) / size)),
  };

  /** Frequencies and phases of a seed, and at each size the entries of both matrices and their error. */
  function draw(seed) {
    const drawn = AnswersBack.normals(seed, 3 * MOST), omega = drawn.slice(0, MOST);
    const b = omega.map((_, i) => Math.atan2(drawn[MOST + 2 * i], drawn[MOST + 2 * i + 1]));
    // cos(ω(x − y)) at each difference, and cos(ω(x + y) + 2b) at each sum, summed over draws.
    const apart = LINE.map(() => 0), across = Array.from({ length: 81 }, () => 0);
    const entries = { cosines: {}, phase: {} }, rms = { cosines: [], phase: [] };
    const keep = (form, size, entry) => {
      entries[form][size] = entry;
      rms[form].push(root((k, i, j) => (entry(i, j) - k) ** 2));
    };
    omega.forEach((w, i) => {
      apart.forEach((_, h) => (apart[h] += Math.cos((w * h) / 5)));
      across.forEach((_, s) => (across[s] += Math.cos((w * (s - 40)) / 5 + 2 * b[i])));
      const n = i + 1, first = apart.map((x) => x / n), second = across.map((x) => x / n);
      if (SIZES.includes(2 * n)) keep("cosines", 2 * n, (i, j) => first[Math.abs(i - j)]);
      if (SIZES.includes(n)) keep("phase", n, (i, j) => first[Math.abs(i - j)] + second[i + j]);
    });
    return { omega, b, entries, rms };
  }
  let last = {};

  AnswersBack.figure("gram", {
    title: "move x, and see which curve changes its shape; then add features until both agree with the kernel",
    picture: "One row of a Gram matrix, from two forms of features and from the kernel, and the error against their number",
    height: (width) => (width < 600 ? 394 : 320),
    controls: {
      F: { label: "features F", values: SIZES, value: 16 },
      x: { label: "point x", min: -4, max: 4, step: 0.2, value: 0 },
      seed: { press: "Draw other frequencies", value: 1 },
    },

    /** The row of x by both forms, and at each size the RMS error of the matrix and the formula's. */
    compute({ F, x, seed }) {
      if (last.seed !== seed) last = { seed, ...draw(seed) };
      const at = Math.round(5 * x) + 20, { omega, b, entries, rms } = last, rows = {};
      for (const form of ["cosines", "phase"]) rows[form] = LINE.map((_, j) => entries[form][F](at, j));
      return { omega, b, at, kernel: LINE.map((_, j) => bell(at, j)), rows, rms, predicted: PREDICTED };
    },

    draw({ F }, { at, kernel, rows, rms, predicted }, width, height) {
      const narrow = width < 600, half = narrow ? width - 60 : width / 2 - 60;
      const row = AnswersBack.frame([38, 24, half, narrow ? 118 : 206], {
        x: [-4, 4], y: [-1.2, 2.1], xticks: [-4, -2, 0, 2, 4], yticks: [-1, 0, 1, 2],
        xlabel: "point y", ylabel: "kernel of x and y",
      });
      row.line([LINE[at], LINE[at]], [-2, 3], "s6 thin", "2 4");
      row.line(LINE, kernel, "s6");
      const fall = AnswersBack.frame(narrow ? [50, 216, half - 12, 112] : [width / 2 + 45, 24, half - 5, 206], {
        x: [2, MOST], logx: true, y: [0.005, 2], logy: true,
        xticks: [[2, "2"], [16, "16"], [128, "128"], [MOST, "2,048"]], yticks: [[0.01, "0.01"], [0.1, "0.1"], [1, "1"]],
        xlabel: "features F", ylabel: "RMS error of all pairs, dotted: formula",
      });
      for (const [form, ink, dash] of FORMS) {
        row.line(LINE, rows[form], `s${ink}`, dash);
        fall.line(SIZES, predicted[form], `s${ink} thin`, "2 4");
        fall.line(SIZES, rms[form], `s${ink}`, dash);
        fall.dot(F, rms[form][SIZES.indexOf(F)], `f${ink}`);
      }
      const lines = [["", 6, "", "kernel"], ...FORMS].map(([, ink, dash, name], i) =>
        [`s${ink}`, dash, name, 10 + [0, 0.26, 0.6][i] * Math.min(width, 480)]);
      return row.svg() + fall.svg() + AnswersBack.legend(lines, height - 12);
    },

    words({ F, x }, { at, rows, rms, predicted }) {
      const say = AnswersBack.say, i = SIZES.indexOf(F);
      return `With ${F.toLocaleString("en")} features the pairs of 41 points have an RMS error of ` +
        `${say(rms.cosines[i])} with cosines and sines, where the formula predicts ${say(predicted.cosines[i])}, and of ` +
        `${say(rms.phase[i])} with a phase, where it predicts ${say(predicted.phase[i])}. Four times as many features halve ` +
        `these predictions. At y = x = ${x.toLocaleString("en").replace("-", "−")} the kernel is 1 and the features with a phase give ` +
        `${say(rows.phase[at])}. Cosines and sines give ${say(rows.cosines[at])}, and their curve keeps its shape as x moves.`;
    },
  });
})();
