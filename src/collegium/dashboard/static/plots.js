// Two plots: every agent's statistic against rounds, and bits against error.

import { areSeveral, between, classColour, label, labelled, tone } from "./classes.js";
import { colour, fitCanvas, percent, signed } from "./texts.js";

const FONT = "11.5px system-ui, sans-serif";

function steps(low, high, wanted) {
  const rough = (high - low) / wanted || 1, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough);
  const ticks = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i++) ticks.push(i * step);
  return { ticks, digits: Math.max(0, -Math.floor(Math.log10(step) + 1e-9)) };
}

export class ConsensusPlot {
  constructor(canvas, scrub) {
    Object.assign(this, { canvas, item: null });
    this.behind = document.createElement("canvas");
    const at = (event) => {
      const { left } = canvas.getBoundingClientRect();
      const share = (event.clientX - left - this.left) / (this.right - this.left);
      scrub(Math.round(Math.max(0, Math.min(1, share)) * this.item.rounds));
    };
    canvas.addEventListener("pointerdown", (event) => { canvas.setPointerCapture(event.pointerId); at(event); });
    canvas.addEventListener("pointermove", (event) => event.buttons && at(event));
  }

  // What does not change from frame to frame.
  prepare(item, ghost, chosen) {
    Object.assign(this, { item, ghost, chosen });
    const { width, height } = fitCanvas(this.canvas);
    if (!width) return;
    const known = [item.statistics, ghost?.statistics ?? [], item.limit, 0].flat(3).filter((v) => v !== null && v !== undefined);
    let [low, high] = known.reduce(([a, b], v) => [Math.min(a, v), Math.max(b, v)], [0, 0]);
    const margin = 0.07 * (high - low || 1);
    low -= margin;
    high += margin;
    Object.assign(this, { left: 44, right: width - 12, top: 8, bottom: height - 34, low, high });
    this.behind.width = this.canvas.width;
    this.behind.height = this.canvas.height;
    const pen = this.behind.getContext("2d");
    pen.setTransform(this.canvas.width / width, 0, 0, this.canvas.width / width, 0, 0);
    this.axes(pen);
    if (ghost) {
      pen.setLineDash([2, 4]);
      if (areSeveral()) this.entries(pen, ghost, ghost.rounds, (c, k) => [colour("muted"), chosen === null ? 0.3 : k === chosen ? 0.8 : 0, 1]);
      else this.lines(pen, ghost, ghost.rounds, () => [colour("muted"), 0.55, 1]);
      pen.setLineDash([]);
    }
    if (areSeveral()) this.entries(pen, item, item.rounds, (c, k) => [classColour(c), k === chosen ? 0.6 : chosen === null ? 0.16 : 0.07, 1.2]);
    else this.lines(pen, item, item.rounds, (value, k) => [tone(value), k === chosen ? 0.6 : 0.2, 1.2]);
  }

  x(t) { return this.left + ((this.right - this.left) * t) / Math.max(1, this.item.rounds); }
  y(value) { return this.bottom - ((value - this.low) / (this.high - this.low)) * (this.bottom - this.top); }

  axes(pen) {
    const { left, right, top, bottom, item } = this, zero = this.y(0);
    pen.font = FONT;
    if (!areSeveral()) {
      pen.fillStyle = colour("plus-wash");
      pen.fillRect(left, top, right - left, zero - top);
      pen.fillStyle = colour("minus-wash");
      pen.fillRect(left, zero, right - left, bottom - zero);
    }
    const { ticks, digits } = steps(this.low, this.high, 6);
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    for (const tick of ticks) {
      pen.strokeStyle = colour(Math.abs(tick) < 1e-12 ? "muted" : "line");
      line(pen, left, this.y(tick), right, this.y(tick));
      pen.fillStyle = colour("muted");
      pen.fillText(Math.abs(tick) < 1e-12 ? "0" : signed(tick, digits), left - 6, this.y(tick));
    }
    pen.textAlign = "center";
    pen.textBaseline = "top";
    for (const tick of steps(0, item.rounds, 8).ticks) if (Number.isInteger(tick)) pen.fillText(tick, this.x(tick), bottom + 5);
    pen.fillText("round", (left + right) / 2, bottom + 19);
    pen.textAlign = "right";
    pen.font = `600 ${FONT}`;
    if (areSeveral()) return this.limits(pen);
    pen.fillStyle = colour("plus");
    if (zero - top > 18) pen.fillText(labelled(0), right - 6, top + 5);
    pen.fillStyle = colour("minus");
    pen.textBaseline = "bottom";
    if (bottom - zero > 18) pen.fillText(labelled(1), right - 6, bottom - 5);
    if (item.limit !== null) {
      pen.strokeStyle = pen.fillStyle = colour("ink");
      pen.setLineDash([7, 4]);
      pen.lineWidth = 1.5;
      line(pen, left, this.y(item.limit), right, this.y(item.limit));
      pen.setLineDash([]);
      pen.lineWidth = 1;
      pen.textAlign = "right";
      const text = `limit ${signed(item.limit)}`, below = this.y(item.limit) < top + 40;
      pen.textBaseline = below ? "top" : "bottom";
      pen.strokeStyle = colour("card");
      pen.lineWidth = 4;
      pen.strokeText(text, right - 56, this.y(item.limit) + (below ? 4 : -4));
      pen.fillText(text, right - 56, this.y(item.limit) + (below ? 4 : -4));
      pen.lineWidth = 1;
    }
  }

  // Of several classes: where each entry ends, and its name where there is room.
  limits(pen) {
    const { left, right, item } = this, ends = item.limit ?? item.statistics.at(-1)?.find((value) => value) ?? [];
    pen.textBaseline = "bottom";
    const written = [];
    for (const [value, c] of ends.map((value, c) => [value, c]).sort((a, b) => b[0] - a[0])) {
      const y = this.y(value);
      pen.strokeStyle = pen.fillStyle = classColour(c);
      if (item.limit !== null) {
        pen.setLineDash([7, 4]);
        line(pen, left, y, right, y);
        pen.setLineDash([]);
      }
      if (written.some((other) => Math.abs(other - y) < 13)) continue;
      written.push(y);
      pen.strokeStyle = colour("card");
      pen.lineWidth = 4;
      pen.strokeText(labelled(c), right - 4, y - 2);
      pen.lineWidth = 1;
      pen.fillText(labelled(c), right - 4, y - 2);
    }
  }

  // Of several classes: one line for every agent and class, each in one stroke.
  entries(pen, item, until, style) {
    const whole = Math.min(Math.floor(until), item.statistics.length - 1), K = item.statistics[0]?.length ?? 0;
    for (let k = 0; k < K; k++) {
      const C = item.statistics[0][k]?.length ?? 0;
      for (let c = 0; c < C; c++) {
        const [tone, alpha, width] = style(c, k);
        if (!alpha) continue;
        Object.assign(pen, { strokeStyle: tone, globalAlpha: alpha, lineWidth: width });
        pen.beginPath();
        for (let t = 0; t <= whole && item.statistics[t][k]; t++) pen.lineTo(this.x(t), this.y(item.statistics[t][k][c]));
        const [a, b] = [item.statistics[whole]?.[k], item.statistics[whole + 1]?.[k]];
        if (until > whole && a && b) pen.lineTo(this.x(until), this.y(a[c] + (b[c] - a[c]) * (until - whole)));
        pen.stroke();
      }
    }
    pen.globalAlpha = pen.lineWidth = 1;
  }

  lines(pen, item, until, style) {
    const K = item.statistics[0]?.length ?? 0;
    for (let k = 0; k < K; k++) {
      for (let t = 0; t < Math.min(until, item.statistics.length - 1); t++) {
        const a = item.statistics[t][k], b = item.statistics[t + 1][k];
        if (a === null || b === null) continue;
        const share = Math.min(1, until - t);
        const [tone, alpha, width] = style(b, k, t);
        pen.strokeStyle = tone;
        pen.globalAlpha = alpha;
        pen.lineWidth = width;
        line(pen, this.x(t), this.y(a), this.x(t + share), this.y(a + (b - a) * share));
      }
    }
    pen.globalAlpha = pen.lineWidth = 1;
  }

  draw(playhead) {
    const { pen, width, height } = fitCanvas(this.canvas), { item, chosen } = this;
    if (!item || !width) return;
    pen.clearRect(0, 0, width, height);
    pen.drawImage(this.behind, 0, 0, width, height);
    pen.strokeStyle = colour("muted");
    line(pen, this.x(playhead), this.top, this.x(playhead), this.bottom);
    pen.lineCap = "round";
    if (areSeveral()) this.entries(pen, item, playhead, (c, k) => [classColour(c), chosen === null ? 0.6 : chosen === k ? 0.95 : 0.12, chosen === k ? 2.4 : 1.3]);
    else this.lines(pen, item, playhead, (value, k, t) => {
      const settled = item.settled?.[t + 1]?.[k], strong = chosen === null || chosen === k;
      return [tone(value), strong ? 0.95 : 0.22, (settled ? 2.6 : 1.5) + (chosen === k ? 1 : 0)];
    });
    const t = Math.min(Math.floor(playhead), item.statistics.length - 1), share = playhead - t;
    (item.statistics[t] ?? []).forEach((value, k) => {
      if (value === null) return;
      const then = item.statistics[t + 1]?.[k];
      const statistic = share > 0 && then !== undefined && then !== null ? between(value, then, share) : value;
      const c = label(statistic), isSquare = c === 1 && !areSeveral();
      const now = Array.isArray(statistic) ? Math.max(...statistic) : statistic; // of several classes the leading entry
      pen.globalAlpha = chosen === null || chosen === k ? 1 : 0.3;
      pen.fillStyle = classColour(c);
      pen.strokeStyle = colour("card");
      pen.beginPath();
      isSquare ? pen.rect(this.x(playhead) - 3.6, this.y(now) - 3.6, 7.2, 7.2) : pen.arc(this.x(playhead), this.y(now), 4.2, 0, 7);
      pen.fill();
      pen.stroke();
      if (chosen === k) {
        pen.fillStyle = colour("ink");
        pen.font = `600 ${FONT}`;
        pen.textAlign = playhead > 0.8 * item.rounds ? "right" : "left";
        pen.textBaseline = "bottom";
        pen.fillText(`agent ${k}`, this.x(playhead) + (playhead > 0.8 * item.rounds ? -8 : 8), this.y(now) - 5);
      }
    });
    pen.globalAlpha = 1;
  }
}

export class CostPlot {
  constructor(canvas) { this.canvas = canvas; }

  draw(given, changed, t, isEmpty) {
    const { pen, width, height } = fitCanvas(this.canvas);
    pen.clearRect(0, 0, width, height);
    pen.font = FONT;
    pen.fillStyle = colour("muted");
    const shown = changed ?? given;
    if (!shown?.errors) {
      pen.textAlign = "center";
      pen.textBaseline = "middle";
      const why = isEmpty ? "No item is known of all agents yet." : "Computing …";
      pen.fillText(shown ? "The true classes are not known here." : why, width / 2, height / 2 - 8);
      if (shown) pen.fillText("Give --labels or --data to see errors.", width / 2, height / 2 + 10);
      return;
    }
    const curves = [given, changed].filter((one) => one?.errors);
    const left = 44, right = width - 14, top = 10, bottom = height - 36;
    const most = Math.max(...curves.flatMap((one) => one.bits.map(([, bits]) => bits)), 10);
    const high = Math.max(...curves.flatMap((one) => one.errors), 0.01) * 1.12;
    // Logarithmic, but with room for zero: the first round's bits are where it begins to be.
    const first = Math.min(...curves.flatMap((one) => one.bits.map(([, bits]) => bits || Infinity)), most);
    const squeeze = (bits) => Math.log10(1 + bits / first);
    const x = (bits) => left + (squeeze(bits) / squeeze(most * 1.15)) * (right - left);
    const y = (error) => bottom - (error / high) * (bottom - top);
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    const { ticks, digits } = steps(0, 100 * high, 5);
    for (const tick of ticks) {
      pen.strokeStyle = colour("line");
      line(pen, left, y(tick / 100), right, y(tick / 100));
      pen.fillText(`${tick.toFixed(digits)} %`, left - 6, y(tick / 100));
    }
    pen.textAlign = "center";
    pen.textBaseline = "top";
    let written = -Infinity;
    for (const tick of [0, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6, 1e7].filter((tick) => tick <= most)) {
      if (x(tick) - written < 30) continue;
      written = x(tick);
      pen.fillText(tick >= 1e6 ? `${tick / 1e6}M` : tick >= 1e3 ? `${tick / 1e3}k` : tick, x(tick), bottom + 5);
      line(pen, x(tick), bottom, x(tick), bottom + 3);
    }
    pen.fillText("bits per item, all agents", (left + right) / 2, bottom + 20);
    for (const one of curves) {
      const isGiven = one === given && changed;
      pen.strokeStyle = pen.fillStyle = colour(isGiven ? "muted" : "ink");
      pen.globalAlpha = isGiven ? 0.75 : 1;
      pen.lineWidth = isGiven ? 1.3 : 2;
      pen.setLineDash(isGiven ? [4, 3] : []);
      pen.beginPath();
      one.bits.forEach(([round, bits], i) => pen[i ? "lineTo" : "moveTo"](x(bits), y(one.errors[round])));
      pen.stroke();
      pen.setLineDash([]);
      for (const [round, bits] of one.bits) {
        pen.beginPath();
        pen.arc(x(bits), y(one.errors[round]), isGiven ? 1.8 : 2.4, 0, 7);
        pen.fill();
      }
      pen.globalAlpha = pen.lineWidth = 1;
    }
    const here = shown.bits.reduce((best, one) => (Math.abs(one[0] - t) < Math.abs(best[0] - t) ? one : best));
    pen.strokeStyle = colour("focus");
    pen.lineWidth = 2.5;
    pen.beginPath();
    pen.arc(x(here[1]), y(shown.errors[here[0]]), 6.5, 0, 7);
    pen.stroke();
    pen.lineWidth = 1;
    pen.font = `600 ${FONT}`;
    pen.fillStyle = colour("ink");
    pen.textAlign = "right";
    pen.textBaseline = "top";
    pen.fillText(`stop after round ${here[0]}: ${percent(shown.errors[here[0]])}`, right - 4, top + 1);
  }
}

function line(pen, ax, ay, bx, by) {
  pen.beginPath();
  pen.moveTo(ax, ay);
  pen.lineTo(bx, by);
  pen.stroke();
}
