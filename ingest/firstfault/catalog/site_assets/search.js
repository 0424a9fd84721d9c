// Ranked word search over ENTRIES: [id, title, class or table, role, text]. A beginning of a word counts half.
"use strict";
(() => {
  const words = (text) => text.toLowerCase().match(/[a-z0-9]+/g) || [];
  const weights = [6, 5, 3, 0, 1];
  const index = new Map();
  ENTRIES.forEach((entry, number) => {
    entry.forEach((text, field) => {
      if (!weights[field]) return;
      for (const word of words(text)) {
        if (!index.has(word)) index.set(word, new Map());
        const row = index.get(word);
        row.set(number, Math.max(row.get(number) || 0, weights[field]));
      }
    });
  });
  const known = [...index.keys()].sort();

  function add(scores, row, share) {
    const rarity = Math.log(1 + ENTRIES.length / row.size) * share;
    for (const [number, weight] of row) {
      scores.set(number, Math.max(scores.get(number) || 0, weight * rarity));
    }
  }

  function find(text) {
    const total = new Map();
    for (const word of new Set(words(text).slice(0, 40))) {
      const scores = new Map();
      if (index.has(word)) add(scores, index.get(word), 1);
      if (word.length > 2) {
        for (const other of known) if (other !== word && other.startsWith(word)) add(scores, index.get(other), 0.5);
      }
      for (const [number, score] of scores) {
        const sum = total.get(number) || { score: 0, words: 0 };
        total.set(number, { score: sum.score + score, words: sum.words + 1 });
      }
    }
    return [...total].map(([number, sum]) => [ENTRIES[number], sum.score * sum.words])
      .sort((a, b) => b[1] - a[1]).slice(0, 25).map(([entry]) => entry);
  }

  const input = document.getElementById("words");
  const found = document.getElementById("found");
  const groups = document.getElementById("groups");

  function show() {
    const results = input.value.trim() ? find(input.value) : [];
    groups.hidden = results.length > 0;
    found.replaceChildren(...results.map(([id, title, place, role]) => {
      const item = document.createElement("li");
      const link = document.createElement("a");
      link.textContent = title;
      link.href = role === "code" ? `codes.html#${id.split(" ")[0]}` : `entry/${id}.html`;
      const note = document.createElement("small");
      note.textContent = `${id} · ${place}`;
      item.append(link, note);
      return item;
    }));
  }

  input.form.addEventListener("submit", (event) => event.preventDefault());
  input.addEventListener("input", show);
  show();
})();
