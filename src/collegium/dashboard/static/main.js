// The page: one feed in, playback, what-ifs, and everything drawn from one state.

import { areSeveral, clearness, className, colourName, label, markOf, placeOf, setClasses } from "./classes.js";
import { NetworkView } from "./network.js";
import { ConsensusPlot, CostPlot } from "./plots.js";
import { AgentTable, HealthTable } from "./tables.js";
import { WhatIfForm } from "./what_if.js";
import { count, percent, plural, readColours } from "./texts.js";

const $ = (id) => document.getElementById(id);
const HOLD = 1200; // milliseconds a decided item stays before the next one
const LEAST = 66; // milliseconds between two writings of the tables while playing
const NOTHING = { statistics: [], settled: null, spoke: [] }; // a network before its first item
const KEPT = 100; // live items to go back to
const LOOK = 3000; // milliseconds between two looks whether a recorded run is still there
// The keys that a control has a use for itself.
const OWN = [
  ["button, [type=checkbox]", [" ", "Enter"]], ["[type=range]", ["ArrowLeft", "ArrowRight"]],
  [".scroll", [" ", "ArrowLeft", "ArrowRight"]], ["select, input", null],
];

const state = {
  about: null, given: null, changed: null, changes: {}, playhead: 0, playing: false, speed: 5, chosen: null, items: new Map(),
  health: null, scale: 1, asked: 0, wanted: null, again: null, endedAt: null, dirty: true, written: { t: -1, at: 0 }, averagedAt: 0,
};
let view, plot, cost, agents, health, form;
const isLive = () => state.about.kind === "live";
const shown = () => state.changed ?? state.given;
const reached = () => Math.max(0, shown().item.statistics.length - 1);
const round = () => Math.min(Math.floor(state.playhead + 1e-6), reached());

async function begin() {
  theme();
  const about = (state.about = await (await fetch("/api/about")).json());
  state.scale = about.scale;
  document.title = `Collegium · ${about.title}`;
  $("title").textContent = $("title").title = about.title;
  setClasses(about.classes);
  legend(about.classes);
  $("item").max = about.items - 1;
  $("item").hidden = isLive();
  $("which").closest("label").hidden = $("onward-label").hidden = isLive();
  $("follow-label").hidden = $("health").hidden = !isLive();
  view = new NetworkView($("links"), $("nodes"), about, choose);
  plot = new ConsensusPlot($("plot"), (t) => stepTo(t));
  cost = new CostPlot($("cost-plot"));
  agents = new AgentTable(document.querySelector("#agents tbody"), about, (k) => choose(state.chosen === k ? null : k));
  health = new HealthTable(document.querySelector("#health tbody"), about);
  form = new WhatIfForm($("changes"), about, applyChanges);
  listen();
  document.addEventListener("visibilitychange", watch);
  watch();
  requestAnimationFrame(frame);
}

function legend(classes) {
  const keys = classes.map((name, c) => {
    const key = Object.assign(document.createElement("span"), { className: "key" });
    const mark = Object.assign(document.createElement("b"), { className: `shape ${colourName(c)}`, textContent: markOf(c) });
    key.append(mark, markOf(c) === name ? "" : ` ${name}`);
    return key;
  });
  document.querySelector(".legend").prepend(...keys);
  if (!areSeveral()) return;
  $("statistic-heading").textContent = "Lead";
  $("statistic-heading").title = "How far the largest entry is ahead of the second";
  const heading = Object.assign(document.createElement("th"), { scope: "col", textContent: "Shares" });
  $("statistic-heading").before(heading);
  $("plot").setAttribute("aria-label", "Every agent's entries against rounds, one colour per class");
}

// A browser has six connections to a server for all its tabs: one that is hidden, or has all there is, lets go of its own.
let feed, later;
function watch() {
  feed?.close();
  clearTimeout(later);
  if (document.hidden) return;
  feed = new EventSource("/api/feed");
  feed.onmessage = (event) => {
    receive(JSON.parse(event.data));
    if (isLive()) return;
    feed.close();
    later = setTimeout(watch, LOOK);
  };
  feed.onerror = () => {
    connection(false);
    if (feed.readyState === EventSource.CLOSED) later = setTimeout(watch, LOOK); // else the browser tries again itself
  };
}

// ── what comes in ───────────────────────────────────────────────────────────────────────────────────────────────────

function connection(isThere) {
  $("source").textContent = isThere ? (isLive() ? "Live" : "Simulated") : "Connection lost";
  $("source").className = `pill ${isThere ? state.about.kind : "lost"}`;
}

function receive(snapshot) {
  if (snapshot.start !== state.about.start) return location.reload(); // another dashboard has taken the port
  connection(true);
  if (snapshot.health) health.draw((state.health = snapshot.health), snapshot.notes, $("notes"), $("health-facts"));
  for (const item of snapshot.items.toReversed()) {
    state.items.delete(item.id);
    state.items.set(item.id, item);
  }
  for (const id of [...state.items.keys()].slice(0, -KEPT)) if (id !== state.given?.item.id) state.items.delete(id);
  if (isLive()) rescale();
  const fresh = isLive() && state.given && state.items.get(state.given.item.id);
  if (fresh && JSON.stringify(fresh) !== JSON.stringify(state.given.item)) {
    state.given.item = fresh;
    if (!state.changed) prepare();
  }
  if (isLive()) refreshAverages();
  if (!state.given && !snapshot.items.length) $("rule").textContent = `${state.about.rule} · no item yet`;
  if (!state.given && snapshot.items.length) goTo(newest().id, isLive() || !view.calm.matches);
  else state.again?.();
  state.dirty = true;
}

function rescale() {
  const sizes = [...state.items.values()].flatMap((item) => item.statistics[0] ?? []).filter((v) => v !== null).map(clearness);
  sizes.sort((a, b) => a - b);
  state.scale = sizes[Math.floor(0.8 * sizes.length)] || 1;
}

const newest = () => [...state.items.values()].at(-1);

class Refused extends Error {}

async function ask(id, changes) {
  const answer = await fetch("/api/what-if", {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ item: id, changes }),
  });
  const content = await answer.json();
  if (!answer.ok) throw new Refused(content.error);
  return content;
}

// Show an item: as it was given, and with the changes if there are any.
async function goTo(id, play = state.playing) {
  const ticket = ++state.asked, changes = form.changes(), isChanged = Object.keys(changes).length > 0;
  Object.assign(state, { wanted: id, again: null });
  try {
    let given;
    if (isLive()) given = { item: state.items.get(id) ?? state.given.item, network: state.about.network, rule: state.about.rule, averages: state.given?.averages ?? null };
    else given = state.given?.item.id === id && state.given.averages ? state.given : await ask(id, {});
    const changed = isChanged ? await ask(id, changes) : null;
    if (ticket !== state.asked) return;
    const moved = state.given?.item.id !== id;
    Object.assign(state, { given, changed, changes });
    if (moved) Object.assign(state, { playhead: 0, playing: play, endedAt: null });
    complain("");
    prepare();
    if (!shown().averages && !isLive()) setTimeout(refreshAverages, 700);
  } catch (problem) {
    if (ticket !== state.asked) return;
    state.wanted = state.given?.item.id ?? null;
    if (problem instanceof Refused) return complain(problem.message);
    complain("The dashboard does not answer. The request is repeated as soon as it does.");
    state.again = () => goTo(id, play);
  }
}

// Averages come later where the server is still compiling, and change as live items come.
async function refreshAverages() {
  const { given, changed } = state, ticket = state.asked;
  if (!given || (isLive() && performance.now() - state.averagedAt < 2000)) return;
  state.averagedAt = performance.now();
  const id = isLive() ? [...state.items.values()].findLast(isWhole)?.id : given.item.id;
  if (id === undefined) return;
  let answers;
  try {
    answers = [await ask(id, {}), changed && (await ask(id, state.changes))];
  } catch {
    return; // the feed shows that the connection is lost
  }
  if (ticket !== state.asked) return;
  state.given.averages = answers[0].averages;
  if (changed) changed.averages = answers[1].averages;
  if (!answers[0].averages && !isLive()) setTimeout(refreshAverages, 700);
  prepare();
}

// Whether every agent's local statistic is known: without them there is nothing to simulate.
const isWhole = (item) => Boolean(item.statistics[0]?.every((value) => value !== null));

function applyChanges() {
  if (!state.given) return;
  const changes = form.changes();
  $("reset").disabled = Object.keys(changes).length === 0;
  if (isLive() && Object.keys(changes).length) $("follow").checked = false;
  goTo(state.given.item.id);
}

function complain(sentence) {
  $("mistake").textContent = sentence;
  $("mistake").hidden = !sentence;
}

// ── what is chosen ──────────────────────────────────────────────────────────────────────────────────────────────────

function listen() {
  $("play").addEventListener("click", () => play(!state.playing));
  $("back").addEventListener("click", () => stepTo(round() - 1));
  $("forth").addEventListener("click", () => stepTo(round() + 1));
  $("round").addEventListener("input", () => stepTo(Number($("round").value)));
  $("speed").addEventListener("change", () => (state.speed = Number($("speed").value)));
  $("previous").addEventListener("click", () => walk(-1));
  $("next").addEventListener("click", () => walk(1));
  $("item").addEventListener("change", () => {
    if ($("item").value !== "") goTo(String(Number($("item").value)));
    else $("item").value = state.wanted ?? "";
  });
  $("reset").addEventListener("click", () => form.reset());
  document.addEventListener("keydown", key);
  new ResizeObserver(prepare).observe($("plot"));
  new ResizeObserver(prepare).observe($("cost-plot"));
}

function key(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const own = OWN.find(([where]) => event.target.closest(where));
  if (own && (own[1]?.includes(event.key) ?? true)) return;
  const action = {
    " ": () => play(!state.playing), ArrowLeft: () => stepTo(round() - 1), ArrowRight: () => stepTo(round() + 1),
    n: () => walk(1), p: () => walk(-1), Escape: () => choose(null),
  }[event.key];
  if (!action) return;
  event.preventDefault();
  action();
}

function play(plays) {
  if (!state.given) return;
  if (plays && state.playhead >= shown().item.rounds) state.playhead = 0;
  Object.assign(state, { playing: plays, endedAt: null, dirty: true });
}

function stepTo(t) {
  if (!state.given) return;
  Object.assign(state, { playing: false, playhead: Math.max(0, Math.min(reached(), t)), dirty: true });
}

function walk(step) {
  if (!state.given) return;
  const here = state.wanted; // which may still be on its way
  if (isLive()) {
    const ids = [...state.items.keys()], to = ids[ids.indexOf(here) + step];
    $("follow").checked = false;
    if (to) goTo(to);
    return;
  }
  const list = { split: shown().averages?.split, wrong: shown().averages?.wrong }[$("which").value];
  const at = Number(here), n = state.about.items;
  let to = (at + step + n) % n;
  if (list?.length) to = step > 0 ? (list.find((i) => i > at) ?? list[0]) : (list.findLast((i) => i < at) ?? list.at(-1));
  else if (list) return complain("There is no such item.");
  goTo(String(to));
}

function choose(k) {
  state.chosen = form.chosen = k;
  view.select(k);
  agents.select(k);
  $("chosen").textContent = k === null ? "" : `agent ${k}: ${state.about.agents[k]}`;
  prepare();
}

// ── what is drawn ───────────────────────────────────────────────────────────────────────────────────────────────────

// After anything but the round has changed.
function prepare() {
  if (!state.given) return;
  const { item, network, rule } = shown(), { averages } = shown();
  view.show(network, item.picture, state.changes.faulty ?? []);
  plot.prepare(item, state.changed ? state.given.item : null, state.chosen);
  $("rule").textContent = rule;
  $("network-facts").textContent =
    `${plural(network.perron.length, "agent")} · ${plural(network.links.length, "link")} · disagreement × ${network.slem.toFixed(2)} a round`;
  $("round").max = item.rounds;
  state.playhead = Math.min(state.playhead, reached());
  if (document.activeElement !== $("item")) $("item").value = item.id;
  const { name, id } = state.given.item;
  $("item-name").textContent = !isLive() && name === id ? `of ${state.about.items}` : name;
  $("item-name").title = isLive() && name.endsWith("…") ? `Its name is known to the client that sent it; agents call it ${id}.` : "";
  effects(item, averages);
  $("cost-facts").textContent = averages ? meanOf(averages) : "";
  state.written.t = -1;
  state.dirty = true;
}

function meanOf({ items, total, known }) {
  if (known && known < items) return `mean of ${plural(items, "item")}, errors of the ${known} whose class is known`;
  return items < total ? `mean of the first ${count(items)} of ${count(total)} items` : `mean of ${plural(items, "item")}`;
}

function effects(item, averages) {
  const { given, changed } = state, before = changed ? given.averages : null;
  const change = (old, now, write) => (old === undefined || old === null ? write(now) : [write(old), write(now)]);
  const rows = [];
  if (averages?.errors) rows.push(["Error alone", change(before?.errors[0], averages.errors[0], percent)]);
  if (averages?.errors) rows.push(["Final error", change(before?.errors.at(-1), averages.errors.at(-1), percent)]);
  if (averages) rows.push(["Bits per item", change(before?.bits.at(-1)[1], averages.bits.at(-1)[1], count)]);
  rows.push(["Bits, this item", change(changed ? given.item.bits : null, item.bits, count)]);
  if (changed) {
    const last = (one) => (one.statistics.at(-1) ?? []).map((value) => (value === null ? -1 : label(value)));
    const old = last(given.item), differ = last(item).filter((now, k) => now !== old[k]).length;
    rows.push(["Changed here", `${differ} of ${old.length}`]);
    if (averages) rows.push(["Changed overall", percent(averages.changed)]);
  }
  $("effects").replaceChildren(...rows.flatMap(([name, value]) => {
    const dd = document.createElement("dd");
    if (Array.isArray(value)) dd.append(Object.assign(document.createElement("del"), { textContent: `${value[0]} → ` }), value[1]);
    else dd.textContent = value;
    return [Object.assign(document.createElement("dt"), { textContent: name }), dd];
  }));
}

// What follows the round: texts, numbers, the slider.
function write(t) {
  const { item, network } = shown();
  agents.draw(item, network, t, state.changed ? state.given.item : null);
  $("round").value = t;
  $("round-name").textContent = `round ${t} of ${item.rounds}`;
  $("round").setAttribute("aria-valuetext", `round ${t} of ${item.rounds}`);
  $("play").textContent = state.playing ? "❚❚ Pause" : state.playhead >= item.rounds ? "↻ Replay" : "▶ Play";
  const known = (item.statistics[t] ?? []).filter((value) => value !== null);
  const labels = known.map(label), votes = state.about.classes.map((_, c) => labels.filter((one) => one === c).length);
  const most = Math.max(...votes), decided = votes.indexOf(most), none = labels.filter((one) => one < 0).length;
  const settled = item.settled?.[t]?.filter(Boolean).length ?? null;
  const texts = most ? [`${most} of ${known.length} decide ${className(decided)}`] : [];
  if (none) texts.push(most ? `${none} undecided` : `${none} of ${known.length} undecided`);
  if (settled !== null && (!isLive() || t === item.rounds)) texts.push(settled === known.length ? "all settled" : `${settled} settled`);
  if (item.truth !== null) {
    const truth = placeOf(item.truth), mark = most && most === known.length ? (truth === decided ? " ✓" : " ✗") : "";
    texts.push(`it is ${className(truth)}${mark}`);
  }
  $("verdict").setAttribute("aria-live", state.playing ? "off" : "polite");
  $("verdict").textContent = texts.join(" · ");
  if (!state.playing) view.name(item, t);
  cost.draw(state.given.averages, state.changed?.averages, t, isLive() && ![...state.items.values()].some(isWhole));
  state.written = { t, at: performance.now(), playing: state.playing };
}

let last = 0;
function frame(now) {
  const seconds = Math.min((now - last) / 1000, 0.25);
  last = now;
  if (state.given) {
    if (state.playing) advance(seconds, now);
    const t = round();
    if (state.dirty || state.playing) {
      const scale = state.scale * (shown().rule.startsWith("social-learning") ? Math.max(1, t) : 1);
      const share = state.playing ? Math.max(0, Math.min(state.playhead - t, 0.999)) : 0;
      view.draw(shown().item, t, reached() > t ? share : 0, scale, state.speed, state.health);
      plot.draw(state.playing ? state.playhead : t);
      state.dirty = false;
    }
    const { written } = state;
    if ((written.t !== t || written.playing !== state.playing) && (!state.playing || now - written.at > LEAST)) write(t);
  } else if (state.dirty && view.places.length) {
    view.draw(NOTHING, 0, 0, 1, state.speed, state.health);
    state.dirty = false;
  }
  requestAnimationFrame(frame);
}

function advance(seconds, now) {
  const { item } = shown();
  state.playhead = Math.min(state.playhead + seconds * state.speed, reached());
  if (state.playhead < item.rounds) return;
  state.endedAt ??= now;
  state.dirty = true; // the last picture too, without messages on their way
  const goesOn = isLive() ? $("follow").checked && newest().id !== state.given.item.id : $("onward").checked;
  if (!isLive() && !goesOn) state.playing = false;
  if (!goesOn || now - state.endedAt < HOLD) return;
  state.endedAt = Infinity; // until the next one is there
  isLive() ? goTo(newest().id, true) : walk(1);
}

function theme() {
  const system = matchMedia("(prefers-color-scheme: dark)"), names = { auto: "◐ Auto", light: "☀ Light", dark: "☾ Dark" };
  let wanted = localStorage.getItem("collegium-theme") ?? "auto";
  const paint = () => {
    document.documentElement.dataset.theme = wanted === "auto" ? (system.matches ? "dark" : "light") : wanted;
    $("theme").textContent = names[wanted];
    $("theme").setAttribute("aria-label", `Colours: ${wanted === "auto" ? "as the system" : wanted}`);
    readColours();
    if (state.given) prepare();
    if (view) view.layOut();
    state.dirty = true;
  };
  system.addEventListener("change", paint);
  $("theme").addEventListener("click", () => {
    const order = ["auto", "light", "dark"];
    wanted = order[(order.indexOf(wanted) + 1) % 3];
    localStorage.setItem("collegium-theme", wanted);
    paint();
  });
  paint();
}

begin();
