// The tables: every agent's decision now, and the state of every live agent.

import { count, labelled, signed } from "./texts.js";

const STATES = { up: "● up", late: "◔ late", mute: "◌ mute", silent: "◌ silent", down: "○ down", "over-budget": "✕ over budget", refused: "✕ refused" };

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
    this.about = about;
    this.table = new Rows(body, about.agents.length, ["", "", "number", "", "number"], choose);
    about.agents.forEach((name, k) => this.table.write(k, 0, numbered(name, k)));
  }

  select(k) {
    this.table.rows.forEach(({ row }, j) => row.classList.toggle("selected", j === k));
  }

  draw(item, network, t, before) {
    const { classes } = this.about;
    this.table.rows.forEach(({ cells }, k) => {
      const value = item.statistics[t]?.[k] ?? null, was = before?.statistics[Math.min(t, before.rounds)]?.[k] ?? null;
      const differs = was !== null && value !== null && Math.sign(was) !== Math.sign(value);
      const wrong = item.truth !== null && value && Math.sign(value) !== item.truth ? " ✗" : "";
      const old = !was ? "undecided" : classes[was < 0 ? 1 : 0];
      const texts = value === null ? "–" : `${labelled(value, classes)}${wrong}${differs ? ` (was ${old})` : ""}`;
      this.table.write(k, 1, texts, !value ? "" : value < 0 ? "label-minus" : "label-plus");
      this.table.write(k, 2, signed(value), "number");
      const settled = item.settled?.[t]?.[k] ?? null;
      const missed = item.missed?.[k]?.length ? `, without ${item.missed[k].join(", ")}` : "";
      this.table.write(k, 3, (settled === null ? "–" : settled ? "✓ settled" : "not yet") + missed);
      this.table.write(k, 4, network.perron[k].toFixed(3), "number");
      cells[3].title = item.settled === null ? "There is a proof only for DeGroot at full precision." : "";
    });
  }
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
