// Figure 15.3, interactive: a window and cluster centres on part of two heads of the speech model,
// every second token of 1.6 seconds. Logits and products of values are bytes; a test compares them.
(() => {
  const L = 40;
  const read = ([least, step, text]) => Array.from(atob(text), (c) => least + step * c.charCodeAt(0));
  const HEADS = [
    {
      logits: [-1.787, 0.06183, "p6iSfW5VOSkeDQ4MHCEyS1xbVmJsaWBgZWRQRjtGPjcjGhgUCw4oPNPKrqCQa1lKMxUMDBofPEdXUF1maW5la3l/dWdQUU5NNSMMCQcEGDHbxauVkIBcSEw6NigkQkxcZlVTYGZiTUpcZ19dVlpUTj43IyUgEjBM8uXMraiadVVRRDskGS9EV2VWTllnZVVPZHlvaGNoYlhCRjIoFgciRO347c63qZBwW0lCLxASJD9RT0JAWV1hVld5dmxib2ZeQUc7JgwABibe7ePTv7WdfWxaWUAgFCNDUkQ4OFFUVE5EanV3am9iXkU/QTYXBQMb0t/f7+rHvq6PcWhdUhsyLz4zNzMwPUxSSG55gndzbXxrTUMzHhEHG8bT1932//XOwaaVfF5KO0I7LB4mMzg/SUpqboB8c3F0dmlYTkQuKzantsnG2/j/3M7BuZ1xWEtJQSwbGSkjLTY2Vlpxdm9mcHJ6aF5KOS45prTEx9Lk+uPLt76qg2ZkX1M8KCQvMzw2N1Rccn13bXhvbmlkTTkvNpmpu8fR2Ovo17nHv6lvcVpoW0UuJjIxNjNTWWdxd3qIf29paFlNOj2EnKm429Tf7fTq3uHIpJ+Ec2pgTSQvIR0uNjVXZGV8jJiMd3B8a2hfcHeHibHS1M7l9PfpybminIFkVE44MyMWHy0kR11XY257i4OAiHR9f1FLbXKFoLGyyNvl4MOtn5yCaV5MMx0bGAcYHTxMSUNnYXp4cm5vb3FZTnaDjJWvv8PH2uTdo5+fnXxsVkAxMTUjKSc8TE9LdGNkcXdscm50VlhsbnyElKa1sr/Q0rqvmJiLgHBNSTgwLTQrOklPTmNcWllgZmRja2RPXGJveH6GnamwuMHHzbChmpOCbWdANzAyLEJOTD9QUGFUT11jbXBwZ2lgZWZmcnuTp7C3wt3dyb+2oYF/ZE48MiU5RDsvODpOUU9YY3FmcGFhUVJaUVZpepiVnq6+5enIr6qbjHVlUEo4QkxFJh0bOUhRR0poem9WYUxCTUtEWW2Hkpypt9vv2r6op5WMcVBYSklGRCgkDzE7QTo6TnBqWVtOREVBOVFteYGNrcHj59bKuKyVkHJVXVpgXFU3OiIxQ0pBPEdbeGxmXFE6OjM/UGFtfYytxtLM0c21paKVen1yb2xkQEgvKDAyKC45UIJvZlNGS0YxLDhSVmJwi7W8sbvI5NWop5CMeHFuaz4+Jyo5NCUrQFufgXdmV01HLCMoPT9OcZa7w8K7z+/2z7erqZeHfXdQQigtMC8YFjhfkYOBeG9RUTYpJjA4QFJumqS5sb/R3evQsrCklIN4ZFw7NDQzHxknSoqAenVoVE9BNzI2O0dPa5Chq6yuvbzZ4bWkn5yJeVZgQDY0Mh8oIi+ChndxaVFQQzY0OkBFTGqKmqOruLm8zuHIqp2ckoJkaE9AOTUkKy04c3lrX1NHSTwuKz1GRUpkhZebnaqxuLvKvaOPiYeBb2lYSURFMzQ5QnBsaFxPR0c6MC9DTlBYaYeco5yis7y9w7KekYqHiIF4Y1RTV0hFR0xtc2twaFhbWU02MkNMSlhke4KNh46fq8TDu7esmpubl4hoUFFMS0RBb3BqcnhcV11UQjVDTEJUYHJyjIaCiZOzvbOywLqwqKCZe2BWWVNVVnduZ2ZyalpRUkBHOTYyQVd6ZGp2gYGAoq+wsr7Ew6iNjYJwa1BBVGKGcXNudnl1Y2BNWExAMjtEcGFcWXJ3d46ivsLGzdnRuaqjjYRjTE5lZ1hhYWNWWl9XQ0dKTkFGP1RaXU5bYHB8iaK0trTBwcOnkYZ/cmNRV3VhXV9rYlROUktTQTQ8Q09hXFJQZWxueoKPrMLP1sS8r5OUkoBiVVBlVU9VY2ZiWVhMX1I9OE5HY11RSFZlXXJ7jqK2y9nGxMKmoaKRe2ZYTEtQUGhfYWpxbnV0ZlhsZl5bVlFCSURKY3yEpb7J0tHf3tPAvK+fkDk0Oz1XZGFuhXyShHlvbHRzW0tVRU0/Ql12fpy6wsLC2N3n6NbFxbwoGy8qPlpXXH+FkYJxc2d5e2VPQz8+S0M5UF6DlpuUn67I1drTxbeyLh4tMj1OT1JnaXVjXF9hZWJVUT4+OU5ROkVdeoWKfpOTqLGsr7KUcg=="],
      products: [-20.86, 0.5116, "/2NVOzMhHCQYISIYGSk1UE5CS0QvLS04OTk9RDwrLDQtNiU5JBksKnptVjwjHyQlKx8nHzEyRUxIRzwuMzwpITgyKicpQS0xLyIfKSYqJYFmQjEmKCktIB0oMS07TkRMQzw3QTIeNTAtLi4+PDkrLCUlNTElcUgzNTIlJiQlKywlOUc3QTY1PkA8JTExKS0uOjY7Kzo5OkE1JVdAQTAtMDMwKCgiNjo0Mjo/QTs1JS0qIiUkNDY7MzQzNjAqJGlcNSw2QjEpMSItKSMpNUVALSggISUdHx4pMzkpOj08MiwkgUcrHkFCMCQWJzkmJCg/Wzg5LB8iGyYwLzQxJD1IQzArMV04MDU9RywpKykkMB4qODM1MiAlKCgtNS4rGh0mOD04MFFEMyo0PDAuKzApMTgsMigpKiIfGyYqJywlHhchKi0lbTsgLU1CMi0rJiw2HCghIyYqKiAXJRsoGAwJHiIgFoBINCAjICMiJhoqPS4lHx8UDQwQGxshKy1APDokCnFGJxgnIC0qFxg+Mi8rIhwfHC0rFhMaHjRDOS8waDonHSApKRYYJTA3OSEbIyErKCkkDRMgMUg1J4JmOD4vLDIoIyoqLSsqKyUkKSMuDggDHCEnIpVRUTUpMB0PKSUpLikjIxQpGyogEgsYGyYjlYRZOjYlEjE5ITY+PTomLBobDQAHJRUjIsJ5V0ovNEpVMTcyMUAxNSgmJBkdKCMsMIhnUy4sMDYzNjI3OjZMNTEiIiM7NCwspnQxMi81LUA4NDsuRkg8JicoNzo0N4FKNDEuMTUtIywkN0BHODMsJiUxMZuCQSgYKRYQDhQhJzdCTzkpISAmuF0mJS8dGRsuOzc0QlZbTTwvOntRL0AwJCAlLSUkJSg1MzMvQHo/LS0sMCoWGRwgJSkbJCImXDI0Mzg1KSYlJyAgJTAvMWhfU1JJMyIdJBsTIB0hO3+Be2ZEKBkVFg0iHBsys62RVzQfDBEOHSIXK8WqY0EqHx8aFyIaLrxySjgzNS0lMyg6mGlPKDE+U1I8Nqt/OUhIR1dYTYlIWUxFVVU8notcKTE8PbWQUlhKPcN0bUslmYBbOJ5wN3lhuA=="],
      nearest: { 2: "0000000000000011111111111111111111111111", 4: "0000000011111111122222222222333333333333", 8: "0001111122222333333444444555556666777777" },
    },
    {
      logits: [-2.868, 0.0265, "/6ioh2pbfFVMVqhueitbbI6aiFd/jY1XbXBkZmiDcX9wenSLfI5edbio07uJWnRxQyBiYWYTKWiotbaUebXTsoNSRTpFcXqJlmlaZmqDaWigst3LmGJ3jFQzcnGSFi1crbXGm4al2seKSS4zQWl+k7VzbHJ3m49+fsTp4sVkc51pRYyAoSozUa6uw52KpN3GiFY0LTZjjoa5XV5qf7KniVefy9W8f3yOdUSPa4lQYleyfJiqo7DHvJdVIRkqYHaBuFZDaFuFmW1eU399kY1XZJuHjGaEo2lXiUlyiOOGgoFnYSMrMUx0hZ6RWnxke4psX2xxjpiGd2FrUIV/g4VkQolobYWcrKOhlGAxKTp0eoWVVkWRcoiGj01rdJSLa147WVePjn1xVjFtU3ZKZIeKhW9MMy44cIB/nC4vX2W4oIk4VF50fGo6TYVeYHNp2IhlYzVhdoNgkHx0bkE5O3hybopuPEdGgaOIORpFUU+lUlqho3FWZtemcV0tW229UWNmc4lSXWBbS1Bhr2hPPmOAlWIgQ2Rdvn5ga2SAXW5ya0RmPHVjtKt1e2NKIUtxhVFZV4NypE14YW97cGqMdEuFdU0leXdmMkJPcWt8Wlqhpo1sPzhIUZ98a2xROXVagGJmV25xl45reXldE3yVjWJKJ1dbnHRWgqqSdywACS9+gnuEMRdkVpyPbyFaX3SFiXaEqmdmeIG/r3SCS1J0aEGKgIhqMC0tYGh0kVIdNUJ2jH1DOVRfZpZhYbF+cGNr0LOIiEdEapFMbGF7fExIQ049XHx8V1RBbIp2iFV1Y2FaSk2CeoZaVICdxLVYREmKZH2DZGxmY1JWP1B2bFNRSmRjSaF+lIGJT1lOX1dvSUZvg87XkldYkHSirGVWSkZPa1xlbmBTXVldXEGsp7mcjlljUFFHfU9fRVh9wb6aeI+RqaBpVzcaKF92hYBTO1NpemVacqLIupp1YoR3X5FfoUhdQKOVxnuEgqmHTEAeDSRZgaCmV1dQXa+GaVqhydHKglJuilqNUYVlaTl5UbGdl4qtkWJHLyo/ZISwvVhefkegkXZuWIF5gcpUQo2MbjdVlWJrh0Vth9t4e19IWzJJV2NEdo+1sYM4W29tZpGGlIyYkmt7Xp9mZEc+OoV2hIuhoq9zb15DQUyXbH1/W3WVV21aZWSQqsK2eIJwcj2Xb3tMe4TMXG14iavGtHVCNi83b059qEFRfViUiGlmjKy9sXGQfnpFjWuETIOA3IRqc3SNs6x9TTIoK2xedKQ3S2xdkJBmUYCjusGJhHiSSYF6kHeOT6llbHFFdKegjYdbQEdxYXuyOiU/QYOSp2FjdoKJd2RWlGlsYGB5hFeGWmZgZ2KHgKC+h3lyjFVlfJVUS0Vvi8FkUFxmW1hUWYlxcGReZ3xoe1dcYnBecmOEwa+unJNWZW6cb09GYHq4W0laVjlKVVR3dYBeXHN0dHhTTVl8XmVIarnQ07ufUF5gjIFKQE1ssG5VZmE/WmVgZ2SDUWt3d3yLYltnkHpvXWqcsbWro1ltbHV+Xk1MapN7aGtmOzxjWFFDXFpURzxgqHZ9bGahmoFsg5ekssx8d4VYY4RbW2edi5ybk0lRdFRJRGlycEc5P6atp3xfsKOGhFdLWGu2lYuZPEWCd4N9f3GJr5xbS21/TT1yV4ddPCt7isyYapG4kHc+LjNEapifrUlIbG+SjWhcib+wiEdKgFYwbT55b1tKfmG+qJCIraN6RiozTWidsrhWUnljj6drf16AcnJsKy91XlkUPoR8d2g2cXrBa3pfVmRTT1FuQXh/zriJKlh0gmlSf310e0dLemNmGEhZWIF1SXN85pB9aUtgX2tzbUx0fd3WljxhaICIYnqfj3doWjs2djJTOkpvimB0dKm2j4FbMz1WaI5PeXyUtqhVdXZgfYqNp4hcfXxBKopxczEtTJ+ApH+BwcSlbCsbITeRj5WvYmWjgJyQbVyJmr6gg6PHazmNjrdIPi6Ii9GskMHLtIA5CxYod56TsmJhnqrNtYJchLDHunqCu3s7dXOqT00+jW60p32Ku7qCXTEzOmaansJkWIKItrKylXiVn4picYyIRltnjnhjWXFif5J3aXtvoZl4alN2b5SZhHZ7fY6p2w=="],
      products: [-39.88, 0.9057, "/3x5VUIhByMMKiczRDgyMDpjSFQuLxYVQkNAPCgUQ0IlMiNEPEJHPoB8ZVMaDRkNHxwtJiY0PDtYRUonLDcjKTQ+PDcoP0AnKxwvOTo5LqKKZzQUGBEkCyQwJC9BSV9MVSczQikwOTs+OSU/TDAsIy1ART8qmHQxHyUaJBcpLh00Pk9QRlMjPVA9QjQyMDMjMz4oJStCQURLK4pDMTUvMSw1NjE1LjlCLVAuRls+QSkiIyUbNyUaIx80O0RJMZ1jSk5POEJITjkqKy4gMz1ELCoqKR4WHSoxJSgqPi5KOTArfV9INjRMRzcmHSgXFBkuRTRCNSojGSI9OB8bIjAtSD47PHhOODNVVC4jFw8XICIcPDk5PygiICE1PyQMHR8qRjo+P3pWQD5FOywcIBUXJTc0NS8pLhwWGTIlDig9OSMpHyU2ek0sNFhFMzAuJi85MiQdNSkrKCQdJiMzKCUZJS0pJatMLDw8KR8OFBgxMSIgOxoQAAwKHiEpOT1bNTo4D31rMSAgHicgFxMzMSlCKxcVFjA2GxQnMUBaRUNElEomFxsoKisYPDYjPSwZHhsrPx8UGSIqT0tCR45sNS0tKTQ/QysiKCEhHRoWKSEiGBoUHycyNqJSRC8vRCcvNDtEKDUmNBciMykjJSQIECcRf3dOLCMkHT9IOzhDP0MqICoqJBgaIyIiIKxlLykiIkxaOjk5PUM1IBsuLyomHiMkLJtnUCsjKTEoNTNDPCo9OjUoJSQyQDQzo3Q2NicxGDM6NzsvK085IScSGi81Hq9NUjQvRjk3MjchNV9CNDAtFyVAIZRiNCcbLBwTFh4eJTlYXj8lNDQ9gUo6NTMnFxwwNCQZMEE9OTlFPZpiPSsgJiUkHRIQKSUrJyowQHc7PTszNzQYFxQcKSsfHCkooEU9NjYhM0ouNzFBMD1KM2RfVEhBLjApKyoqHhgkK4FyaFI5OyUWFRwWFh0Ri3peQjs1GhomFh0bGYdqRkE4KS4tGiEgE4pcNjcyQzAyJSUqi1pALi9BUlBENZdkOTM7ND9AGptcW1Q7Qz4zp5ViPEBATruOSEtEQs9rYF9BnoRtWqB6UopioQ=="],
      nearest: { 2: "0000010011000111000010000111100001100001", 4: "0001121122211223101121111333331112211113", 8: "0111123322233440033563115777773556663357" },
    },
  ].map(({ logits, products, nearest }) => {
    const all = read(logits), half = read(products), gram = [];
    for (let i = 0, at = 0; i < L; i++) {
      for (let j = i; j < L; j++, at++) ((gram[i] ??= [])[j] = half[at]), ((gram[j] ??= [])[i] = half[at]);
    }
    return { logits: gram.map((_, i) => all.slice(L * i, L * (i + 1))), gram, nearest };
  });
  const softmax = (row) => {
    const top = Math.max(...row), raised = row.map((x) => Math.exp(x - top));
    const total = raised.reduce((sum, x) => sum + x, 0);
    return raised.map((x) => x / total);
  };
  const square = (gap, gram) =>
    gap.reduce((sum, a, i) => sum + a * gap.reduce((inner, b, j) => inner + gram[i][j] * b, 0), 0);

  AnswersBack.figure("window", {
    title: "widen the window, then summarise the far keys by cluster centres, until the right picture matches the left one",
    picture: "The attention weights of a head, exact, and from a window and cluster centres",
    height(width) { return this.side(width) + 58; },
    side: (width) => Math.min(280, (width - 20) / 2),
    controls: {
      band: { label: "window in orange: keys on each side", min: 0, max: 20, step: 1, value: 5 },
      centres: { label: "cluster centres for far keys", values: [0, 1, 2, 4, 8], value: 0 },
      query: { label: "query, outlined", min: 1, max: L, step: 1, value: 20 },
      far: { label: "a head that attends to distant keys; unticked, one that attends locally", value: true },
    },

    /** Weights (L, L), exact and approximated, and the normalised error of the output. */
    compute({ band, centres, far }) {
      const { logits, gram, nearest } = HEADS[Number(far)];
      const own = Array.from(nearest[centres] ?? "0".repeat(L), Number);
      let error = 0, baseline = 0, held = 0;
      const exact = logits.map(softmax);
      const weights = logits.map((row, i) => {
        const sum = [], count = []; // the logit of a centre is the mean of those of its keys
        own.forEach((c, j) => { sum[c] = (sum[c] ?? 0) + row[j]; count[c] = (count[c] ?? 0) + 1; });
        const found = softmax(row.map((logit, j) => {
          if (Math.abs(i - j) <= band) return logit;
          return centres ? sum[own[j]] / count[own[j]] : -Infinity;
        }));
        error += square(found.map((w, j) => w - exact[i][j]), gram);
        baseline += square(exact[i].map((w) => 1 / L - w), gram);
        held += exact[i].reduce((total, w, j) => total + w * (Math.abs(i - j) <= band), 0) / L;
        return found;
      });
      return { logits, gram, own, exact, weights, held, error: error / baseline };
    },

    /** A picture of weights: the strength of the ink is the root of a weight. */
    picture_of(weights, most) {
      const canvas = Object.assign(document.createElement("canvas"), { width: L, height: L });
      const pen = canvas.getContext("2d");
      pen.fillStyle = AnswersBack.COLORS[0];
      weights.forEach((row, i) => row.forEach((w, j) => {
        pen.globalAlpha = Math.min(1, Math.sqrt(w / most));
        pen.fillRect(j, i, 1, 1);
      }));
      return canvas.toDataURL();
    },

    draw({ band, query }, { exact, weights }, width) {
      const side = this.side(width), cell = side / L, most = Math.max(...exact.flat());
      const left = [2, side + 18], top = 30;
      return [["exact", exact], ["window and centres", weights]].map(([name, rows], n) => {
        const at = (j) => left[n] + cell * Math.max(0, Math.min(L, j));
        const edge = (over) => rows.map((_, i) =>
          `${at(i + over)},${top + i * cell} ${at(i + over)},${top + (i + 1) * cell}`).join("L");
        return `<text x="${left[n]}" y="18">${name}</text>
          <image href="${this.picture_of(rows, most)}" x="${left[n]}" y="${top}" width="${side}"
            height="${side}" style="image-rendering: pixelated"/>
          <rect class="s6 grid" fill="none" x="${left[n]}" y="${top}" width="${side}" height="${side}"/>
          <path class="line thin s1" d="M${edge(-band)}M${edge(band + 1)}"/>
          <rect class="s6" fill="none" x="${left[n]}" y="${top + (query - 1) * cell}" width="${side}" height="${cell}"/>
          <text x="${left[n]}" y="${top + side + 18}">${n ? "darker: more weight" : "keys →, queries ↓"}</text>`;
      }).join("");
    },

    words({ band, centres, query, far }, { exact, weights, held, error }) {
      const say = AnswersBack.say, row = query - 1;
      const within = (rows) => rows[row].reduce((sum, w, j) => sum + w * (Math.abs(row - j) <= band), 0);
      const given = centres ? centres === 1 ? "the mean key" : `${centres} centres` : "nothing";
      return `Over 40 tokens of speech, this head has ${say(100 * held)} % of its weight in a ` +
        `window of ${band} keys on each side. With ${given} for the far keys, the normalised error of the output ` +
        `is ${say(error)}${error > 1 ? ", worse than the mean of all values (1)" : "; the mean of all values has 1"}. ` +
        `Query ${query} gives its window ${say(100 * within(exact))} % of its weight on the left and ${say(100 * within(weights))} % on the right.`;
    },
  });
})();
