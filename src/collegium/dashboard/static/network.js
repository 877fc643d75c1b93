// The network: links on a canvas, because they move all the time; agents in SVG, because they can be chosen.

import { areSeveral, between, className, label, markOf, shade, tone, written } from "./classes.js";
import { colour, fitCanvas } from "./texts.js";

const SVG = "http://www.w3.org/2000/svg";
const MARKS = { going: "◔", late: "◔", mute: "◌", silent: "◌", down: "○", "over-budget": "✕", refused: "✕" };
const FAST = 12; // rounds a second from which a travelling dot could not be seen

const clamp = (value, least, most) => Math.max(least, Math.min(value, most));

function make(name, attributes = {}, text = "") {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text) element.textContent = text;
  return element;
}

export class NetworkView {
  constructor(canvas, svg, about, choose) {
    Object.assign(this, { canvas, svg, about, choose, network: about.network, picture: null, chosen: null, places: [] });
    this.calm = matchMedia("(prefers-reduced-motion: reduce)");
    this.agents = about.agents.map((name, k) => this.makeAgent(name, k));
    this.names = shortened(about.agents);
    new ResizeObserver(() => this.layOut()).observe(svg);
    svg.addEventListener("keydown", (event) => this.key(event));
  }

  makeAgent(name, k) {
    const group = make("g", { class: "agent", role: "option", tabindex: k ? -1 : 0, "aria-selected": "false" });
    const parts = { group, shown: {} };
    group.append((parts.tie = make("line", { class: "tie" }))); // from an agent to what it sees
    for (const part of ["halo", "ring", "body"]) group.append((parts[part] = make("rect", { class: part })));
    group.append((parts.sign = make("text", { class: "sign" })));
    group.append((parts.mark = make("text", { class: "mark" })));
    group.append((parts.view = make("svg", { viewBox: `${96 * k} 0 96 96` })));
    parts.view.append((parts.image = make("image", { width: 96 * this.about.agents.length, height: 96 })));
    group.append((parts.frame = make("rect", { class: "frame", rx: 3 })));
    group.append((parts.name = make("text", { class: "name" }, String(k))));
    group.append((parts.title = make("title", {}, name)));
    group.addEventListener("click", () => this.choose(this.chosen === k ? null : k));
    this.svg.append(group);
    return parts;
  }

  key(event) {
    const K = this.agents.length, at = this.chosen ?? 0;
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    let to = step ? (this.chosen === null ? 0 : (at + step + K) % K) : undefined;
    if (event.key === "Home") to = 0;
    if (event.key === "End") to = K - 1;
    if (event.key === "Enter" || event.key === " ") {
      const k = this.agents.findIndex((one) => one.group === document.activeElement);
      to = k === this.chosen ? null : k;
    }
    if (event.key === "Escape") to = null;
    if (to === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    this.choose(to);
    if (to !== null) this.agents[to].group.focus();
  }

  select(k) {
    this.chosen = k;
    this.agents.forEach(({ group }, j) => {
      group.setAttribute("aria-selected", String(j === k));
      group.setAttribute("tabindex", j === (k ?? 0) ? 0 : -1);
    });
  }

  // Another network, or another picture of what agents see.
  show(network, picture, faulty) {
    const moved = network !== this.network;
    this.network = network;
    this.agents.forEach((one, k) => one.group.classList.toggle("faulty", faulty.includes(k)));
    if (picture !== this.picture) {
      this.picture = picture;
      for (const { image } of this.agents) picture ? image.setAttribute("href", picture) : image.removeAttribute("href");
      this.layOut();
    } else if (moved || !this.places.length) this.layOut();
  }

  layOut() {
    const { width, height } = this.svg.getBoundingClientRect();
    if (!width) return;
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const K = this.agents.length, { positions, perron } = this.network;
    const largest = Math.max(...perron), unit = Math.min(1, Math.sqrt(12 / K), width / 420);
    this.radii = perron.map((weight) => unit * (9 + 13 * Math.sqrt(weight / largest)));
    this.tile = this.picture && K <= 30 ? Math.max(22, 40 * unit) : 0;
    const pad = 28 * unit + (this.tile ? this.tile * 0.95 : 14), xs = positions.map((p) => p[0]), ys = positions.map((p) => p[1]);
    const span = (values, room) => {
      const low = Math.min(...values), high = Math.max(...values);
      return (value) => (high - low < 1e-9 ? room / 2 : pad + ((value - low) / (high - low)) * (room - 2 * pad));
    };
    const x = span(xs, width), y = span(ys.map((v) => -v), height);
    this.places = positions.map(([px, py]) => [x(px), y(-py)]);
    this.agents.forEach((one, k) => this.place(one, k, unit, width, height));
    this.dirty = true;
  }

  place(one, k, unit, width, height) {
    const [x, y] = this.places[k], r = this.radii[k];
    const square = (part, size) => {
      for (const [key, value] of [["x", x - size], ["y", y - size], ["width", 2 * size], ["height", 2 * size]]) part.setAttribute(key, value);
    };
    square(one.body, r);
    square(one.ring, r + 3.5);
    square(one.halo, r + 8);
    one.sign.setAttribute("x", x);
    one.sign.setAttribute("y", y);
    const [vx, vy] = this.besides(k, this.tile, width, height);
    for (const part of [one.view, one.frame]) {
      part.setAttribute("visibility", this.tile ? "visible" : "hidden");
      part.setAttribute("x", vx - this.tile / 2);
      part.setAttribute("y", vy - this.tile / 2);
      part.setAttribute("width", this.tile);
      part.setAttribute("height", this.tile);
    }
    one.tie.setAttribute("visibility", this.tile ? "visible" : "hidden");
    for (const [key, value] of [["x1", x], ["y1", y], ["x2", vx], ["y2", vy]]) one.tie.setAttribute(key, value);
    const name = this.names[k], isShown = !this.tile && this.agents.length <= 16 && name !== `agent ${k}`;
    one.name.textContent = isShown ? name : String(k); // as long as there is room; the tables have all names
    const half = 3.4 * name.length + 2; // about, in letters of 11 pixels
    const below = [clamp(x, half, width - half), clamp(y + r + 16, 0, height - 4)];
    const [nx, ny] = isShown ? below : this.tile ? [vx - this.tile / 2 + 5, vy + this.tile / 2 - 2] : [x + r * 0.75 + 9, y + r * 0.75 + 12];
    one.name.setAttribute("x", nx);
    one.name.setAttribute("y", ny);
    one.mark.setAttribute("x", x + r * 0.9 + 3);
    one.mark.setAttribute("y", y - r * 0.9 + 1);
    one.shown = {};
  }

  // Where an agent's view stands beside it: away from links, from other agents and from the border.
  besides(k, size, width, height) {
    const [x, y] = this.places[k], away = this.radii[k] + 6 + size * 0.62;
    let best = [x, y], least = Infinity;
    for (let step = 0; step < 16; step++) {
      const angle = (step * Math.PI) / 8 - Math.PI / 4;
      const at = [x + away * Math.cos(angle) * 1.08, y + away * Math.sin(angle)];
      let cost = step * 0.01;
      const half = size / 2;
      if (at[0] < half + 1 || at[0] > width - half - 1 || at[1] < half + 1 || at[1] > height - half - 15) cost += 50;
      this.places.forEach((other, j) => {
        if (j === k) return;
        const gap = Math.hypot(at[0] - other[0], at[1] - other[1]) - this.radii[j];
        cost += gap < size * 0.8 ? 20 : 400 / (gap * gap);
      });
      if (this.network.links.length < 400)
        for (const [a, b] of this.network.links) {
          const gap = distance(at, this.places[a], this.places[b]);
          if (gap < size * 0.62) cost += 1 + (size * 0.62 - gap) / size * 3;
        }
      if (cost < least) [best, least] = [at, cost];
    }
    return best;
  }

  // The agents after round t, and on their way to the next one by `share`.
  draw(item, t, share, scale, speed, health) {
    const now = item.statistics[t] ?? [], then = item.statistics[t + 1];
    this.agents.forEach((one, k) => {
      let value = now[k] ?? null;
      if (then && share > 0 && value !== null && then[k] !== null) value = between(value, then[k], share);
      const settled = Boolean(item.settled?.[t]?.[k]);
      const { fill, ink } = shade(value, scale), symbol = value === null ? "?" : markOf(label(value)), shown = one.shown;
      if (shown.fill !== fill) one.body.setAttribute("fill", (shown.fill = fill));
      if (shown.symbol !== symbol || shown.ink !== ink) {
        one.sign.textContent = shown.symbol = symbol;
        one.group.classList.toggle("absent", value === null);
        one.sign.setAttribute("fill", (shown.ink = ink));
        for (const [part, more] of [["body", 0], ["ring", 3.5], ["halo", 8]])
          one[part].setAttribute("rx", symbol === "−" ? 4 + more : this.radii[k] + more);
      }
      if (shown.settled !== settled) one.ring.setAttribute("visibility", (shown.settled = settled) ? "visible" : "hidden");
      const mark = health ? (MARKS[health[k].state] ?? "") : "";
      if (shown.mark !== mark) one.mark.textContent = shown.mark = mark;
    });
    this.drawLinks(item, t, share, speed);
  }

  drawLinks(item, t, share, speed) {
    const { pen, width, height } = fitCanvas(this.canvas);
    pen.clearRect(0, 0, width, height);
    const moving = share > 0, sent = moving ? item.spoke[t] : item.spoke[t - 1];
    const dots = moving && speed < FAST && !this.calm.matches;
    const glow = !moving ? 0.25 : dots ? 0.35 : 1 - 0.6 * share;
    const both = new Set(this.network.links.map(([a, b]) => a * 1e4 + b));
    const crowd = Math.min(1, 40 / this.network.links.length + 0.35);
    for (const [a, b, weight] of this.network.links) {
      const sends = Boolean(sent?.[a]), near = this.chosen === a || this.chosen === b;
      const [from, to] = this.ends(a, b, both.has(b * 1e4 + a) ? 3 : 0);
      pen.lineWidth = 0.8 + 2.6 * weight;
      pen.globalAlpha = (this.chosen === null ? 1 : near ? 1 : 0.45) * crowd;
      pen.strokeStyle = colour("line");
      stroke(pen, from, to);
      if (sends) {
        pen.globalAlpha *= near ? 0.9 : glow;
        pen.strokeStyle = colour("muted");
        stroke(pen, from, to);
      }
      pen.globalAlpha = (this.chosen === null || near ? 0.75 : 0.2) * crowd;
      arrow(pen, from, to, colour("muted"));
      if (dots && sends) {
        const value = item.statistics[t]?.[a] ?? 0, isSquare = label(value) === 1 && !areSeveral();
        pen.globalAlpha = 1;
        pen.fillStyle = tone(value);
        const x = from[0] + (to[0] - from[0]) * share, y = from[1] + (to[1] - from[1]) * share;
        pen.beginPath();
        isSquare ? pen.rect(x - 3, y - 3, 6, 6) : pen.arc(x, y, 3.4, 0, 7);
        pen.fill();
      }
    }
    pen.globalAlpha = 1;
  }

  // From rim to rim; the two directions of a pair side by side.
  ends(a, b, aside) {
    const [ax, ay] = this.places[a], [bx, by] = this.places[b];
    const length = Math.hypot(bx - ax, by - ay) || 1, ux = (bx - ax) / length, uy = (by - ay) / length;
    const start = this.radii[a] + 5, stop = this.radii[b] + 7;
    return [
      [ax + ux * start - uy * aside, ay + uy * start + ux * aside],
      [bx - ux * stop - uy * aside, by - uy * stop + ux * aside],
    ];
  }

  // What a screen reader reads of each agent.
  name(item, t) {
    this.agents.forEach((one, k) => {
      const value = item.statistics[t]?.[k] ?? null;
      const c = value === null ? -1 : label(value), what = areSeveral() ? "lead" : "statistic";
      const text = value === null ? "nothing yet" : c < 0 ? "undecided" : `${className(c)}, ${what} ${written(value)}`;
      const settled = item.settled?.[t]?.[k] ? ", settled" : "";
      one.group.setAttribute("aria-label", `Agent ${k}, ${this.about.agents[k]}: ${text}${settled}`);
    });
  }
}

function stroke(pen, from, to) {
  pen.beginPath();
  pen.moveTo(...from);
  pen.lineTo(...to);
  pen.stroke();
}

function arrow(pen, from, to, fill) {
  const angle = Math.atan2(to[1] - from[1], to[0] - from[0]);
  pen.fillStyle = fill;
  pen.beginPath();
  pen.moveTo(...to);
  for (const turn of [2.7, -2.7]) pen.lineTo(to[0] + 6 * Math.cos(angle + turn), to[1] + 6 * Math.sin(angle + turn));
  pen.fill();
}

// Names with room beside each other: the long ones cut, with their numbers where two begin alike.
function shortened(names) {
  const cut = (name, length) => (name.length <= length ? name : `${name.slice(0, length - 1).trimEnd()}…`);
  const short = names.map((name) => cut(name, 16));
  return names.map((name, k) => (short.filter((one) => one === short[k]).length > 1 ? cut(`${k} ${name}`, 16) : short[k]));
}

function distance([x, y], [ax, ay], [bx, by]) {
  const dx = bx - ax, dy = by - ay;
  const share = Math.max(0, Math.min(1, ((x - ax) * dx + (y - ay) * dy) / (dx * dx + dy * dy || 1)));
  return Math.hypot(x - ax - share * dx, y - ay - share * dy);
}
