// Figure 12.5, interactive: pairs of a key and a value are added to a state of fixed size, and then
// one key is looked up.
AnswersBack.figure("fills", {
  title: "add pairs to a state of fixed size, look up one key, and see the answer drift away from its value",
  picture: "The state, a value beside the answer, and the error against the number of pairs",
  height: (width) => (width < 600 ? 368 : 300),
  controls: {
    n: { label: "pairs stored, n", min: 1, max: 64, step: 1, value: 8 },
    d: { label: "width d of the keys", values: [4, 8, 16, 32, 64], value: 16 },
    ask: { label: "key to look up; 1 is the oldest", min: 1, max: 64, step: 1, value: 1 },
    seed: { press: "Draw other pairs", value: 1 },
    factor: { label: "multiply the answer by the best factor, d/(n\u00a0+\u00a0d\u00a0−\u00a01)", value: false },
  },

  /** The sum, the answer to a key, and the relative squared error over all keys for each n. */
  compute({ n, d, ask, factor, seed }) {
    const E = 8, MOST = 64, drawn = AnswersBack.normals(seed, MOST * (d + E));
    const { square } = AnswersBack, keys = AnswersBack.units(drawn, MOST, d);
    const values = keys.map((_, i) => drawn.slice(MOST * d + i * E, MOST * d + (i + 1) * E));
    const S = Array.from({ length: d }, () => new Array(E).fill(0));
    const answers = keys.map(() => new Array(E).fill(0)), errors = [], law = [];
    let held = 0, answer, asked;
    for (let t = 0; t < MOST; t++) {
      if (t < n) keys[t].forEach((x, r) => values[t].forEach((v, c) => (S[r][c] += x * v)));
      answers.forEach((found, i) => {
        const near = keys[i].reduce((sum, x, r) => sum + x * keys[t][r], 0);
        values[t].forEach((v, c) => (found[c] += near * v));
      });
      const scale = factor ? d / (t + d) : 1;
      held += square(values[t]);
      const wrong = (i) => square(values[i].map((v, c) => v - scale * answers[i][c]));
      errors.push(answers.slice(0, t + 1).reduce((sum, _, i) => sum + wrong(i), 0) / held);
      law.push(t / (factor ? t + d : d));
      if (t + 1 === n) {
        asked = Math.min(ask, n) - 1;
        answer = { value: values[asked], found: answers[asked].map((x) => scale * x), error: wrong(asked) / square(values[asked]) };
      }
    }
    return { keys, values, S, asked, errors, law, ...answer };
  },

  draw({ n, d, factor }, { S, value, found, asked, errors, law }, width, height) {
    const narrow = width < 600, cell = Math.min(14, (narrow ? 112 : 190) / d), wide = 14, top = 44;
    const most = Math.max(...S.flat().map(Math.abs)), parts = [];
    parts.push(`<text x="4" y="18" font-weight="600">the state</text><text x="4" y="36">${d} × 8 numbers</text>`);
    S.forEach((row, r) => row.forEach((x, c) => parts.push(
      `<rect class="f${x < 0 ? 1 : 0}" opacity="${(Math.abs(x) / most).toFixed(2)}" x="${4 + wide * c}" y="${top + cell * r}"
        width="${wide}" height="${cell}"/>`)));
    parts.push(`<rect class="s6 grid" fill="none" x="4" y="${top}" width="${8 * wide}" height="${cell * d}"/>`);
    parts.push(`<text x="4" y="${top + cell * d + 18}">orange: below 0</text>`);
    const left = 140, tall = Math.max(3, ...[...value, ...found].map(Math.abs));
    [["value " + (asked + 1), value, 0], ["answer", found, 3]].forEach(([name, list, ink], row) => {
      const [middle, unit] = narrow ? [52 + 80 * row, 26 / tall] : [76 + 112 * row, 42 / tall];
      parts.push(`<text x="${left}" y="${middle - (narrow ? 34 : 50)}" font-weight="600">${name}</text>`);
      parts.push(`<path class="grid" d="M${left} ${middle}h136"/>`);
      list.forEach((x, c) => parts.push(`<rect class="f${ink}" x="${left + 17 * c}" y="${middle - Math.max(0, x) * unit}"
        width="14" height="${Math.abs(x) * unit}"/>`));
    });
    const high = Math.max(1.25, 1.2 * Math.max(law.at(-1), factor ? 0 : errors.at(-1)));
    const box = narrow ? [44, 204, width - 60, 116] : [340, 34, width - 356, 212];
    const plot = AnswersBack.frame(box, {
      x: [1, 64], y: [0, high], xticks: [1, 16, 32, 48, 64],
      yticks: [...(high > 8 ? [] : [0]), 1, ...(high > 2.5 ? [Math.floor(high)] : [])],
      xlabel: "pairs stored, n", ylabel: "squared error over all keys; dotted: formula",
    });
    const ns = law.map((_, i) => i + 1);
    plot.line([1, 64], [1, 1], "s6 thin", "7 4");
    plot.line(ns, law, "s6", "2 4");
    plot.line(ns, errors, "s3");
    plot.dot(n, errors[n - 1], "f3");
    return parts.join("") + plot.svg();
  },

  words({ n, d, ask, factor }, { errors, law, asked, error }) {
    const say = AnswersBack.say, number = factor ? "(n\u00a0−\u00a01)/(n\u00a0+\u00a0d\u00a0−\u00a01)" : "(n\u00a0−\u00a01)/d";
    return `The state stores ${n === 1 ? "one pair" : `${n} pairs`} in ${8 * d} numbers. Its answer for key ${asked + 1}${ask > n ? ` (there is no key ${ask} yet)` : ""} ` +
      `has a relative squared error of ${say(error)}. Over all keys the error is ${say(errors[n - 1])}, and the ` +
      `formula ${number} predicts ${say(law[n - 1])}; 1, the dashed line, is the error of the answer 0. ` +
      "On average an old key is answered as well as a new one.";
  },
});
