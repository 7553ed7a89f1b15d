// Figure 03.3, interactive: frequencies are drawn one after another, and the mean of their waves
// becomes the Gaussian kernel.
AnswersBack.figure("waves", {
  title: "draw more frequencies, and see their mean become the kernel",
  picture: "Waves, their mean, the Gaussian kernel and a band of two standard deviations",
  height: (width) => (width < 560 ? 260 : 320),
  controls: {
    m: {
      label: "frequencies m", value: 5,
      values: [1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1000, 2000],
    },
    seed: { press: "Draw other frequencies", value: 1 },
  },

  /** Of m frequencies from a seed: kernel, mean of cos(ωr) and predicted spread at 101 r. */
  compute({ m, seed }) {
    const omega = AnswersBack.normals(seed, m);
    const r = Array.from({ length: 101 }, (_, i) => i / 20);
    const kernel = r.map((x) => Math.exp((-x * x) / 2));
    const mean = r.map((x) => omega.reduce((sum, w) => sum + Math.cos(w * x), 0) / m);
    const sigma = r.map((x) => -Math.expm1(-x * x) / Math.sqrt(2 * m));
    const gaps = mean.map((x, i) => Math.abs(x - kernel[i]));
    const gap = Math.max(...gaps), worst = gaps.indexOf(gap);
    const within = gaps.filter((x, i) => x <= 2 * sigma[i]).length;
    return { omega, r, kernel, mean, sigma, gap, worst, within };
  },

  draw({ m }, { omega, r, kernel, mean, sigma }, width, height) {
    const plot = AnswersBack.frame([38, 24, width - 50, height - 90], {
      x: [0, 5], y: [-1.1, 1.1], xticks: [0, 1, 2, 3, 4, 5], yticks: [-1, 0, 1],
      xlabel: "distance r", ylabel: m > 8 ? `8 of ${m.toLocaleString("en")} waves` : "all waves",
    });
    for (const w of omega.slice(0, 8)) plot.line(r, r.map((x) => Math.cos(w * x)), "s5 thin");
    const edge = (sign) => kernel.map((k, i) => k + sign * 2 * sigma[i]);
    plot.band(r, edge(-1), edge(1), "f4");
    plot.line(r, kernel, "s6");
    plot.line(r, mean, "s1", "7 4");
    const [one, two, three, last] = [0, 0.22, 0.49, 0.74].map((part) => 8 + part * width);
    const lines = [["s5 thin", "", "wave", one], ["s6", "", "kernel", two], ["s1", "7 4", "mean", three]];
    return `${plot.svg()}${AnswersBack.legend(lines, height - 10)}
      <rect class="band f4" x="${last}" y="${height - 17}" width="22" height="14"/>
      <text x="${last + 26}" y="${height - 5}">± 2σ</text>`;
  },

  words({ m }, { r, gap, worst, within, sigma }) {
    const say = AnswersBack.say, waves = m === 1 ? "one wave" : `${m.toLocaleString("en")} waves`;
    return `The mean of ${waves} differs from the kernel by at most ${say(gap)}, at distance ` +
      `${r[worst]}. The formula predicts a standard deviation of ${say(sigma[worst])} there, and ` +
      `${within} of 101 points of the mean are within two standard deviations. Four times as many ` +
      "frequencies halve the band.";
  },
});
