// What a statistic says: its label, how clear it is, and how both are drawn. A statistic is one number for two classes,
// positive for the first; of several classes it has one entry for each, and the largest decides.

import { colour, mixture, signed } from "./texts.js";

const COLOURS = 10; // in the style sheet; more classes begin again, and have their letter to be told by
let classes = ["", ""], marks = [];

// Several classes have a mark each: their names if they are short, else letters.
export function setClasses(names) {
  classes = names;
  const short = names.every((name) => name.length <= 2);
  marks = areSeveral() ? names.map((name, c) => (short ? name : String.fromCharCode(65 + (c % 26)) + (c < 26 ? "" : Math.floor(c / 26)))) : ["+", "−"];
}

export const areSeveral = () => classes.length > 2;
export const className = (c) => classes[c];
export const markOf = (c) => (c < 0 ? "?" : marks[c]);

// The place of a true class, which of two classes is written +1 or −1.
export const placeOf = (truth) => (areSeveral() ? truth : truth < 0 ? 1 : 0);

// The place of the label; −1 for zero and for ties: no opinion, which counts as wrong whatever the class.
export function label(statistic) {
  if (!Array.isArray(statistic)) return !statistic ? -1 : statistic < 0 ? 1 : 0;
  const most = Math.max(...statistic), first = statistic.indexOf(most);
  return statistic.indexOf(most, first + 1) < 0 ? first : -1;
}

// |statistic|, or the lead of the largest entry over the second.
export function clearness(statistic) {
  if (!Array.isArray(statistic)) return Math.abs(statistic);
  let [first, second] = [-Infinity, -Infinity];
  for (const entry of statistic) [first, second] = entry > first ? [entry, first] : [first, Math.max(second, entry)];
  return first - second;
}

// Each class's share if the entries are logarithms.
export function shares(statistic) {
  const most = Math.max(...statistic), parts = statistic.map((entry) => Math.exp(entry - most));
  const total = parts.reduce((sum, part) => sum + part, 0);
  return parts.map((part) => part / total);
}

export const between = (a, b, share) => (Array.isArray(a) ? a.map((entry, c) => entry + (b[c] - entry) * share) : a + (b - a) * share);

export const colourName = (c) => (c < 0 ? "muted" : areSeveral() ? `class-${c % COLOURS}` : c ? "minus" : "plus");
export const classColour = (c) => colour(colourName(c));
export const tone = (statistic) => classColour(label(statistic));

// From neutral to the class's colour, the clearer the stronger; and black or white, whichever is read on it.
export function shade(statistic, scale) {
  if (statistic === null) return { fill: colour("card"), ink: colour("muted") };
  const c = label(statistic), share = c < 0 ? 0 : Math.min(1, 0.12 + (0.88 * clearness(statistic)) / scale);
  return mixture(colour("neutral"), c < 0 ? colour("neutral") : classColour(c), share);
}

// A class with its mark, once: −1 is not written as − -1, nor 7 as 7 7.
export function labelled(c) {
  if (c < 0) return "? undecided";
  const name = classes[c];
  if (name === marks[c]) return name;
  return !areSeveral() && /^[+-]/.test(name) ? name.replace("-", "−") : `${marks[c]} ${name}`;
}

// A statistic as a number: itself, or its lead.
export const written = (statistic) => (Array.isArray(statistic) ? clearness(statistic).toFixed(3) : signed(statistic));
