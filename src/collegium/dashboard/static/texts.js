// Colours and numbers, as every part of the page writes them.

let colours = {};

export function readColours() {
  const style = getComputedStyle(document.documentElement);
  const names = ["ground", "card", "ink", "muted", "line", "plus", "minus", "neutral", "plus-wash", "minus-wash", "focus"];
  colours = Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

export const colour = (name) => colours[name];

const channels = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));

// From neutral to the class's colour, the surer the stronger; and black or white, whichever is read on it.
export function shade(statistic, scale) {
  if (statistic === null) return { fill: colours.card, ink: colours.muted };
  const share = statistic === 0 ? 0 : Math.min(1, 0.12 + 0.88 * Math.abs(statistic) / scale);
  const from = channels(colours.neutral), to = channels(statistic < 0 ? colours.minus : colours.plus);
  const mixed = from.map((c, i) => Math.round(c + (to[i] - c) * share));
  const light = mixed.reduce((sum, c, i) => sum + [0.2126, 0.7152, 0.0722][i] * (c / 255) ** 2.2, 0);
  return { fill: `rgb(${mixed.join(" ")})`, ink: light > 0.2 ? "#10161f" : "#ffffff" };
}

// Zero is no opinion: it counts as wrong, whatever the class.
export const sign = (statistic) => (!statistic ? "?" : statistic < 0 ? "−" : "+");

export const tone = (statistic) => colours[!statistic ? "muted" : statistic < 0 ? "minus" : "plus"];

// A class with its sign, once: −1 is not written as − -1.
export function labelled(statistic, classes) {
  if (!statistic) return "? undecided";
  const name = classes[statistic < 0 ? 1 : 0];
  return /^[+-]/.test(name) ? name.replace("-", "−") : `${sign(statistic)} ${name}`;
}

export function signed(value, digits = 3) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  const text = size >= 1e4 ? size.toExponential(1) : size.toFixed(digits);
  return (value < 0 ? "−" : value > 0 ? "+" : "") + text;
}

export const percent = (share, digits = 2) => `${(100 * share).toFixed(digits)} %`;

export function count(value) {
  return value === null || value === undefined ? "–" : Math.round(value).toLocaleString("en").replaceAll(",", "\u202f");
}

export const plural = (n, noun) => `${n} ${noun}${n === 1 ? "" : "s"}`;

export function fitCanvas(canvas) {
  const ratio = Math.min(window.devicePixelRatio || 1, 2);
  const width = canvas.clientWidth, height = canvas.clientHeight;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  return { pen, width, height };
}
