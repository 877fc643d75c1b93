// The tables: every agent's decision now, and the state of every live agent.

import { areSeveral, className, colourName, label, labelled, placeOf, shares, written } from "./classes.js";
import { count, percent } from "./texts.js";

const STATES = { up: "● up", going: "◔ going", late: "◔ late", mute: "◌ mute", silent: "◌ silent", down: "○ down", "over-budget": "✕ over budget", refused: "✕ refused" };

const numbered = (name, k) => (name === `agent ${k}` ? name : `${k} · ${name}`);

// Cells are made once and written only when their texts change.
class Rows {
  constructor(body, count, columns, choose) {
    this.rows = Array.from({ length: count }, (_, k) => {
      const row = body.insertRow();
      if (choose) row.addEventListener("click", () => choose(k));
      const cells = Array.from({ length: columns.length }, (_, c) => {
        const cell = row.insertCell();
        if (columns[c]) cell.className = columns[c];
        return cell;
      });
      return { row, cells };
    });
  }

  write(k, c, text, kind) {
    const cell = this.rows[k].cells[c];
    if (cell.textContent !== text) cell.textContent = text;
    if (kind !== undefined && cell.className !== kind) cell.className = kind;
  }
}

export class AgentTable {
  constructor(body, about, choose) {
    this.table = new Rows(body, about.agents.length, ["", "", ...(areSeveral() ? ["bars"] : []), "number", "", "number"], choose);
    about.agents.forEach((name, k) => this.table.write(k, 0, numbered(name, k)));
    this.bars = areSeveral() ? this.table.rows.map(({ cells }) => makeBars(cells[2], about.classes.length)) : [];
  }

  select(k) {
    this.table.rows.forEach(({ row }, j) => row.classList.toggle("selected", j === k));
  }

  draw(item, network, t, before) {
    const after = areSeveral() ? 3 : 2; // the columns that follow
    this.table.rows.forEach(({ cells }, k) => {
      const value = item.statistics[t]?.[k] ?? null, was = before?.statistics[Math.min(t, before.rounds)]?.[k] ?? null;
      const now = value === null ? -1 : label(value), then = was === null ? -1 : label(was);
      const differs = was !== null && value !== null && then !== now;
      const wrong = item.truth !== null && now >= 0 && now !== placeOf(item.truth) ? " ✗" : "";
      const old = then < 0 ? "undecided" : className(then);
      const texts = value === null ? "–" : `${labelled(now)}${wrong}${differs ? ` (was ${old})` : ""}`;
      this.table.write(k, 1, texts, now < 0 ? "" : `label-${colourName(now)}`);
      this.table.write(k, after, written(value), "number");
      if (this.bars.length) drawBars(this.bars[k], value);
      const settled = item.settled?.[t]?.[k] ?? null;
      const missed = item.missed?.[k]?.length ? `, without ${item.missed[k].join(", ")}` : "";
      this.table.write(k, after + 1, (settled === null ? "–" : settled ? "✓ settled" : "not yet") + missed);
      this.table.write(k, after + 2, network.perron[k].toFixed(3), "number");
      cells[after + 1].title = item.settled === null ? "There is a proof only for DeGroot at full precision." : "";
    });
  }
}

// One bar for every class, all in one: how far the agent shares itself out among them.
function makeBars(cell, count) {
  const box = document.createElement("div");
  box.className = "shares";
  box.setAttribute("role", "img");
  const bars = Array.from({ length: count }, (_, c) => Object.assign(document.createElement("i"), { className: colourName(c) }));
  box.append(...bars);
  cell.append(box);
  return { box, bars };
}

function drawBars({ box, bars }, value) {
  const parts = value === null ? bars.map(() => 0) : shares(value);
  parts.forEach((part, c) => (bars[c].style.width = `${100 * part}%`));
  const order = parts.map((part, c) => [part, c]).sort((a, b) => b[0] - a[0]).slice(0, 3);
  const text = value === null ? "nothing yet" : order.map(([part, c]) => `${className(c)} ${percent(part, 0)}`).join(", ");
  if (box.title !== text) box.setAttribute("aria-label", (box.title = text));
}

export class HealthTable {
  constructor(body, about) {
    this.about = about;
    this.table = new Rows(body, about.agents.length, ["", "state", ...Array(9).fill("number")]);
    about.agents.forEach((name, k) => this.table.write(k, 0, numbered(name, k)));
  }

  draw(health, notes, list, facts) {
    const number = (value, digits) => (value === null ? "–" : value.toFixed(digits));
    health.forEach((one, k) => {
      this.table.write(k, 1, STATES[one.state] ?? one.state, `state ${one.state}`);
      this.table.rows[k].cells[1].title = one.why;
      const kilo = (value) => number(value === null ? null : value / 1e3, 1);
      const cells = [
        number(one.rounds_per_second, 1), number(one.p50_ms, 1), number(one.p99_ms, 1), kilo(one.bytes_sent),
        kilo(one.bytes_received), kilo(one.bytes_per_second), count(one.rejected), count(one.pending), count(one.done),
      ];
      cells.forEach((text, c) => this.table.write(k, c + 2, text));
    });
    const texts = [...health.flatMap((one, k) => (one.why ? [`${this.about.agents[k]} is ${one.state}: ${one.why}`] : [])), ...notes];
    if (list.dataset.texts !== texts.join("\n")) {
      list.dataset.texts = texts.join("\n");
      list.replaceChildren(...texts.map((text) => Object.assign(document.createElement("li"), { textContent: text })));
    }
    const up = health.filter((one) => one.state === "up").length;
    const rate = health.reduce((sum, one) => sum + (one.rounds_per_second ?? 0), 0) / health.length;
    facts.textContent = `${up} of ${health.length} up · ${rate.toFixed(1)} rounds a second an agent`;
  }
}
