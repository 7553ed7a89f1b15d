// Figure 20.1, interactive: keys are written one by one, and three rules show what remains of each.
AnswersBack.figure("state", {
  title: "write one letter after another, and see under which rule all keys still give clear letters",
  picture: "What each key returns under adding, decay and correcting, as pictures of letters",
  height(width) { return 3 * (7 * this.cell(width) + 44) + 40; },
  controls: {
    writes: { label: "letters written: A to F, then X and Y over A and B", min: 0, max: 8, step: 1, value: 5 },
    d: { label: "width d of the keys", values: [4, 8, 16, 32, 64, 128, 256], value: 64 },
    a: { label: "decay: gate a", min: 0, max: 1, step: 0.05, value: 0.7 },
    beta: { label: "correct: strength β", min: 0, max: 2, step: 0.05, value: 1 },
    seed: { press: "Draw other keys", value: 1 },
  },

  GLYPHS: {
    A: "01110100011000111111100011000110001", B: "11110100011000111110100011000111110",
    C: "01110100011000010000100001000101110", D: "11110100011000110001100011000111110",
    E: "11111100001000011110100001000011111", F: "11111100001000011110100001000010000",
    X: "10001100010101000100010101000110001", Y: "10001100010101000100001000010000100",
  },
  ORDER: "ABCDEFXY", // the last two with the first two keys

  /** Answers (6 keys, 35 pixels) of the three rules, and errors over the letter's own square. */
  compute({ writes, d, a, beta, seed }) {
    const { normals, square, units } = AnswersBack, keys = units(normals(seed, 6 * d), 6, d);
    const letters = [...this.ORDER].map((name) => [...this.GLYPHS[name]].map(Number));
    const ask = (S, key) => letters[0].map((_, c) => key.reduce((sum, x, r) => sum + x * S[r][c], 0));
    const rules = { add: [1, null], decay: [a, null], correct: [1, beta] }, answers = {}, errors = {};
    const wanted = keys.map((_, i) => (i + 6 < writes ? letters[i + 6] : i < writes ? letters[i] : null));
    for (const [rule, [kept, strength]] of Object.entries(rules)) {
      const S = Array.from({ length: d }, () => new Array(35).fill(0));
      for (let t = 0; t < writes; t++) {
        const key = keys[t % 6], old = strength === null ? null : ask(S, key);
        const value = letters[t].map((v, c) => (old ? strength * (v - old[c]) : v));
        key.forEach((x, r) => value.forEach((v, c) => (S[r][c] = kept * S[r][c] + x * v)));
      }
      answers[rule] = keys.map((key) => ask(S, key));
      errors[rule] = wanted.map((letter, i) => {
        if (!letter) return null;
        return square(letter.map((v, c) => v - answers[rule][i][c])) / square(letter);
      });
    }
    return { keys, letters, answers, errors };
  },

  draw(state, { answers, errors }, width) {
    const cell = this.cell(width), step = (width - 10) / 6, tall = 7 * cell + 44, parts = [];
    for (let i = 0; i < 6; i++) {
      const right = this.ORDER[i + 6 < state.writes ? i + 6 : i];
      parts.push(`<text x="${5 + i * step}" y="16">${i + 1}: ${i < state.writes ? right : "–"}</text>`);
    }
    const titles = { add: "add", decay: `decay, a = ${state.a}`, correct: `correct, β = ${state.beta}` };
    Object.keys(titles).forEach((rule, row) => {
      const top = row * tall + 42;
      parts.push(`<text x="4" y="${top - 6}" font-weight="600">${titles[rule]}</text>`);
      answers[rule].forEach((answer, i) => {
        const left = 5 + i * step;
        parts.push(`<rect class="s6" fill="none" opacity="0.4" x="${left - 1}" y="${top - 1}"
          width="${5 * cell + 2}" height="${7 * cell + 2}"/>`);
        answer.forEach((value, c) => {
          const ink = Math.min(1, Math.abs(value) / 1.5).toFixed(2);
          if (ink > 0.02) parts.push(`<rect class="f${value < 0 ? 1 : 6}" opacity="${ink}" x="${left + (c % 5) * cell}"
            y="${top + Math.floor(c / 5) * cell}" width="${cell}" height="${cell}"/>`);
        });
        const error = errors[rule][i];
        parts.push(`<text x="${left}" y="${top + 7 * cell + 17}">${error === null ? "–" : error.toFixed(2)}</text>`);
      });
    });
    parts.push(`<text x="4" y="${3 * tall + 33}">numbers: errors; orange: below 0</text>`);
    return parts.join("");
  },

  cell: (width) => Math.min(11, Math.floor((width - 50) / 30)),

  words({ writes, d }, { errors }) {
    if (!writes) return "Nothing is written yet, and each key returns an empty picture.";
    const last = this.ORDER[writes - 1], again = writes > 6;
    const mean = (rule) => {
      const known = errors[rule].filter((error) => error !== null);
      return AnswersBack.say(known.reduce((sum, x) => sum + x, 0) / known.length);
    };
    const key = ((writes - 1) % 6) + 1;
    return `After ${writes} of 8 letters, with keys of ${d} dimensions, key ${key} was last written, ` +
      `${again ? "a second time, " : ""}with ${last}. Its error is ` +
      Object.entries({ add: "under adding", decay: "under decay", correct: "under correcting" })
        .map(([rule, said]) => `${AnswersBack.say(errors[rule][key - 1])} ${said}`).join(", ").replace(/, (?!.*,)/, " and ") +
      `. The mean over all keys written is ${mean("add")}, ${mean("decay")} and ${mean("correct")}; ` +
      "1 is the error of an empty picture.";
  },
});
