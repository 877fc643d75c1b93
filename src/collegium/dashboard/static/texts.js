// Colours and numbers, as every part of the page writes them.

let colours = {};

export function readColours() {
  const style = getComputedStyle(document.documentElement);
  const names = ["ground", "card", "ink", "muted", "line", "plus", "minus", "neutral", "plus-wash", "minus-wash", "focus",
    ...Array.from({ length: 10 }, (_, c) => `class-${c}`)];
  colours = Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

export const colour = (name) => colours[name];

const channels = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));

// Some of the way from one colour to another; and black or white, whichever is read on it.
export function mixture(from, to, share) {
  const [low, high] = [channels(from), channels(to)], mixed = low.map((c, i) => Math.round(c + (high[i] - c) * share));
  const light = mixed.reduce((sum, c, i) => sum + [0.2126, 0.7152, 0.0722][i] * (c / 255) ** 2.2, 0);
  return { fill: `rgb(${mixed.join(" ")})`, ink: light > 0.2 ? "#10161f" : "#ffffff" };
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
