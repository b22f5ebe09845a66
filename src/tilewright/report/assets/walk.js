"use strict";
// A loop nest turn by turn: which tile moves where, by the counting rules, at the first instance of each memory.
(() => {
  class Walk {
    constructor(nest) {
      this.nest = nest;
      const outside = { ...nest.sizes };
      this.loops = [];
      nest.levels.forEach((level, at) => level.loops.forEach(([name, step, axis]) => {
        if (step < outside[name]) this.loops.push({ at, level: level.name, name, step, lanes: axis });
        outside[name] = Math.min(step, outside[name]);
      }));
      this.turns = this.loops.filter((loop) => !loop.lanes);
      this.turns.forEach((turn, place) => { turn.place = place; });
      this.memories = nest.levels.map((_, at) => at).filter((at) => nest.levels[at].kind === "memory");
      this.keepers = nest.tensors.map(({ name }) => this.memories.filter((at) => nest.levels[at].keeps.includes(name)));
      this.inner = this.turns.filter((turn) => turn.at < this.memories[this.memories.length - 1]);
      this.grain = this.inner.length - 1;
      this.first();
    }
    first() { this.at = this.turns.map(() => 0); this.number = 1; this.ended = false; }
    // First index and length of a dimension's piece inside the loops of which `counts` holds.
    piece(name, at, counts) {
      let start = 0;
      let size = this.nest.sizes[name];
      for (const loop of this.loops) if (loop.name === name && counts(loop)) {
        const index = loop.lanes ? 0 : at[loop.place];
        start += index * loop.step;
        size = Math.min(loop.step, size - index * loop.step);
      }
      return [start, size];
    }
    times(turn, at = this.at) {
      const order = this.loops.indexOf(turn);
      const [, size] = this.piece(turn.name, at, (loop) => this.loops.indexOf(loop) < order);
      return Math.ceil(size / turn.step);
    }
    total() {
      const pieces = (size, [loop, ...rest]) => {
        if (!loop) return 1;
        if (loop.lanes) return pieces(Math.min(loop.step, size), rest);
        const left = size % loop.step;
        return Math.floor(size / loop.step) * pieces(loop.step, rest) + (left ? pieces(left, rest) : 0);
      };
      const counted = (name) => this.loops.filter((loop) => loop.name === name && (loop.lanes || loop.place <= this.grain));
      return Object.entries(this.nest.sizes).reduce((all, [name, size]) => all * pieces(size, counted(name)), 1);
    }
    next() {
      for (let place = this.grain; place >= 0; place -= 1) {
        if (this.at[place] + 1 < this.times(this.turns[place])) {
          this.at[place] += 1;
          this.at.fill(0, place + 1);
          this.number += 1;
          return;
        }
      }
      this.ended = true;
    }
    back() {
      if (this.ended) this.ended = false;
      else if (this.number > 1) { this.at = this.before(); this.number -= 1; }
    }
    before() {
      const at = [...this.at];
      let place = this.grain;
      while (at[place] === 0) place -= 1;
      at[place] -= 1;
      for (let inner = place + 1; inner <= this.grain; inner += 1) at[inner] = this.times(this.turns[inner], at) - 1;
      return at;
    }
    // Whether all loops outside a memory take part, so that its tile is known.
    seen(memory) { return this.inner.every((turn) => turn.at >= memory || turn.place <= this.grain); }
    // Positions that a tile has along an axis.
    along(axis, memory, at) {
      let found = [0];
      for (const [name, coefficient] of axis) {
        const [start, size] = this.piece(name, at, (loop) => loop.at < memory);
        const steps = Array.from({ length: size }, (_, index) => (start + index) * coefficient);
        found = found.length === 1 ? steps.map((step) => step + found[0])
          : [...new Set(found.flatMap((place) => steps.map((step) => place + step)))];
      }
      return found;
    }
    words(tensor, memory, at = this.at) {
      return tensor.axes.reduce((all, axis) => all * this.along(axis, memory, at).length, 1);
    }
    shared(tensor, memory, at, other) {
      return tensor.axes.reduce((all, axis) => {
        const there = new Set(this.along(axis, memory, other));
        return all * this.along(axis, memory, at).filter((place) => there.has(place)).length;
      }, 1);
    }
    // What a memory and the one outside it exchange as this turn begins; at the end, what goes out last.
    moves() {
      const changed = this.ended ? -1 : this.at.findLastIndex((index, place) => place <= this.grain && index > 0);
      const found = [];
      this.nest.tensors.forEach((tensor, row) => this.keepers[row].forEach((memory, order) => {
        if (!order || !this.seen(memory)) return;
        const parent = this.keepers[row][order - 1];
        const uses = new Set(tensor.axes.flat().map(([name]) => name));
        const advances = this.turns.findLastIndex((turn) => turn.at < memory && uses.has(turn.name));
        if (changed > advances) return;
        const words = this.words(tensor, memory);
        const move = (way, count, note) => found.push({ row, tensor, parent, memory, way, count, note });
        if (tensor.role !== "outputs") {
          if (this.ended) return;
          const previous = [...this.at];
          previous[changed] -= 1;
          const kept = changed >= 0 && changed === advances ? this.shared(tensor, memory, this.at, previous) : 0;
          move("in", words - kept, kept ? `${kept.toLocaleString("en")} more stay` : "");
          return;
        }
        if (this.ended) move("out", words, "");
        else if (changed >= 0) move("out", this.words(tensor, memory, this.before()), "");
        if (this.ended) return;
        const apart = this.loops.some((loop) => loop.lanes && loop.at > parent && loop.at < memory && !uses.has(loop.name)
          && !this.nest.levels[loop.at].reduces[loop.lanes === "Y" ? 1 : 0]);
        const again = this.turns.some((turn) => turn.place <= advances && !uses.has(turn.name) && this.at[turn.place] > 0);
        if (again && !apart) move("in", words, "partial sums");
      }));
      return found;
    }
  }

  const svg = "http://www.w3.org/2000/svg";
  const node = (space, tag, given = {}, ...inside) => {
    const made = space ? document.createElementNS(space, tag) : document.createElement(tag);
    Object.entries(given).forEach(([name, value]) => made.setAttribute(name, value));
    made.append(...inside);
    return made;
  };
  const html = (tag, given, ...inside) => node(null, tag, given, ...inside);
  const draw = (tag, given, ...inside) => node(svg, tag, given, ...inside);
  const whole = (number) => number.toLocaleString("en");

  // Memories side by side, a line for each tensor; what moves is an arrow with its words.
  const flow = (walk, moves) => {
    const across = (at) => 90 + walk.memories.indexOf(at) * 210;
    const width = across(walk.memories[walk.memories.length - 1]) + 90;
    const height = 34 + walk.nest.tensors.length * 54;
    const found = draw("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "Which tile moves where" });
    walk.memories.forEach((at) => found.append(
      draw("text", { x: across(at), y: 16, class: "memory" }, walk.nest.levels[at].name),
      draw("line", { x1: across(at), x2: across(at), y1: 24, y2: height - 4, class: "column" })));
    walk.nest.tensors.forEach((tensor, row) => {
      const y = 52 + row * 54;
      const keepers = walk.keepers[row];
      found.append(draw("text", { x: 4, y: y + 4, class: "tensor", fill: `var(--${tensor.role})` }, tensor.name));
      keepers.slice(1).forEach((memory, order) => {
        const [from, to] = [across(keepers[order]), across(memory)];
        const own = moves.filter((move) => move.row === row && move.memory === memory);
        found.append(draw("line", { x1: from, x2: to, y1: y, y2: y, class: "rest" }));
        own.forEach((move) => {
          const high = own.length < 2 ? y : y + (move.way === "in" ? -7 : 7);
          const [start, end] = move.way === "in" ? [from + 8, to - 10] : [to - 8, from + 10];
          const turn = Math.sign(end - start) * 8;
          found.append(
            draw("path", { d: `M${start} ${high}H${end}m${-turn} -5l${turn} 5l${-turn} 5`, class: "move",
              stroke: `var(--${tensor.role})` }),
            draw("text", { x: (from + to) / 2, y: own.length > 1 && move.way === "out" ? y + 21 : y - 12, class: "words" },
              whole(move.count) + (move.note ? ` (${move.note})` : "")));
        });
      });
      keepers.forEach((at) => found.append(draw("circle", { cx: across(at), cy: y, r: 5, fill: `var(--${tensor.role})` })));
    });
    return found;
  };

  // Each axis of each tensor as a bar, on which the tiles lie, the inner ones lower.
  const axes = (walk, moves) => walk.nest.tensors.flatMap((tensor, row) => tensor.axes.map((axis) => {
    const length = axis.reduce((all, [name, coefficient]) => all + coefficient * (walk.nest.sizes[name] - 1), 1);
    const bar = html("span", { class: "track" });
    const tiles = walk.keepers[row].slice(1).filter((memory) => walk.seen(memory));
    tiles.forEach((memory, order) => {
      const places = walk.along(axis, memory, walk.at);
      const [low, high] = [Math.min(...places), Math.max(...places) + 1];
      const tile = html("i", { title: `${walk.nest.levels[memory].name}: ${low} to ${high - 1} of ${length}`,
        class: moves.some((move) => move.row === row && move.memory === memory) ? "moved" : "",
        style: `left: ${100 * low / length}%; width: ${100 * (high - low) / length}%; top: ${15 * order}%; `
          + `background: var(--${tensor.role}); opacity: ${0.45 + 0.55 * (order + 1) / tiles.length}` });
      bar.append(tile);
    });
    return html("div", { class: "axis" }, html("span", {}, `${tensor.name} ${axis.map(([name]) => name).join("+")}`), bar,
      html("span", { class: "n" }, whole(length)));
  }));

  const show = (box) => {
    const walk = new Walk(JSON.parse(box.dataset.nest));
    const [status, told, drawing, bars] = ["p", "ul", "div", "div"].map((tag) => html(tag));
    status.className = "turn";
    told.setAttribute("aria-live", "polite");
    told.className = "moves";
    const button = (words, label, act) => {
      const made = html("button", { type: "button", "aria-label": label }, words);
      made.addEventListener("click", () => { act(); refresh(); });
      return made;
    };
    const back = button("\u25C0", "Back", () => walk.back());
    const next = button("Next \u25B6", "Next turn", () => walk.next());
    const grain = html("select", { "aria-label": "Loop whose turns are stepped" });
    walk.inner.forEach((turn) => grain.append(html("option", { value: turn.place }, `every turn of ${turn.name} at ${turn.level}`)));
    grain.value = walk.grain;
    grain.addEventListener("change", () => { walk.grain = Number(grain.value); walk.first(); refresh(); });
    const refresh = () => {
      const moves = walk.moves();
      const places = walk.turns.slice(0, walk.grain + 1).map((turn) =>
        `${turn.level} ${turn.name} ${walk.at[turn.place] + 1}/${walk.times(turn)}`);
      status.textContent = walk.ended ? `After ${whole(walk.number)} turns: the last outputs go out.`
        : `Turn ${whole(walk.number)} of ${whole(walk.total())}${places.length ? ": " : ""}${places.join(" \u00B7 ")}`;
      told.replaceChildren(...moves.map((move) => {
        const [from, to] = [move.parent, move.memory].map((at) => walk.nest.levels[at].name);
        const ends = move.way === "in" ? `${from} \u2192 ${to}` : `${to} \u2192 ${from}`;
        const each = walk.nest.levels[move.memory].instances;
        return html("li", { "data-move": `${walk.nest.levels[move.memory].name}.${move.tensor.name}.${move.way}`,
          "data-words": move.count }, `${move.tensor.name}: ${ends}, ${whole(move.count)} words`
          + (move.note ? `, ${move.note}` : "") + (each > 1 ? `, at the first of ${whole(each)} instances` : ""));
      }));
      drawing.replaceChildren(flow(walk, moves));
      bars.replaceChildren(...axes(walk, moves));
      back.disabled = walk.number === 1 && !walk.ended;
      next.disabled = walk.ended;
    };
    const tools = html("div", { class: "tools" }, button("\u25C0\u25C0", "To the beginning", () => walk.first()), back, next);
    if (walk.inner.length) tools.append(grain);
    box.append(tools, status, drawing, told, bars);
    refresh();
  };
  const begin = (layer) => layer.querySelectorAll(".walk:empty").forEach(show);
  document.querySelectorAll("details.layer").forEach((layer) => {
    layer.addEventListener("toggle", () => { if (layer.open) begin(layer); });
    if (layer.open) begin(layer);
  });
})();
