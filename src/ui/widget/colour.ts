// Colours of the widget: whatever colour an account chose, every text keeps WCAG's contrast of 4.5
// against what is behind it. Pure arithmetic, no browser needed.

type Rgb = readonly [number, number, number];

const AA = 4.5;
const WHITE: Rgb = [255, 255, 255];
const BLACK: Rgb = [0, 0, 0];
const FALLBACK: Rgb = [37, 99, 235];

/** `#rgb` or `#rrggbb`; anything else is the product's blue. */
export function parseColour(text: string): Rgb {
  const hex = /^#?([0-9a-f]{3}|[0-9a-f]{6})$/i.exec(text.trim())?.[1];
  if (!hex) return FALLBACK;
  const at = (index: number): number => hex.length === 3
    ? Number.parseInt(hex.charAt(index).repeat(2), 16)
    : Number.parseInt(hex.slice(2 * index, 2 * index + 2), 16);
  return [at(0), at(1), at(2)];
}

function luminance(colour: Rgb): number {
  const [red, green, blue] = colour.map((value) => value / 255)
    .map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4));
  return 0.2126 * (red ?? 0) + 0.7152 * (green ?? 0) + 0.0722 * (blue ?? 0);
}

export function contrast(one: Rgb, other: Rgb): number {
  const [low = 0, high = 0] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}

/** Black or white: the better of the two is above 4.5 on any colour. */
export const inkOn = (colour: Rgb): Rgb =>
  contrast(WHITE, colour) >= contrast(BLACK, colour) ? WHITE : BLACK;

/** The colour itself if it is readable on the surface, else darker or lighter as far as needed. */
export function readableOn(colour: Rgb, surface: Rgb): Rgb {
  const towards = inkOn(surface);
  const mixed = (share: number): Rgb => {
    const at = (index: 0 | 1 | 2): number =>
      Math.round(colour[index] + (towards[index] - colour[index]) * share);
    return [at(0), at(1), at(2)];
  };
  let share = 0;
  while (share < 1 && contrast(mixed(share), surface) < AA) share += 0.05;
  return mixed(Math.min(share, 1));
}

const css = ([red, green, blue]: Rgb): string => `rgb(${red}, ${green}, ${blue})`;

const SURFACES = {
  light: {
    card: "#ffffff", paper: "#f3f5f8", ink: "#16202c", soft: "#566070", line: "#dce1e7",
    edge: "#7d8794", danger: "#a81e27",
  },
  dark: {
    card: "#151b23", paper: "#212a35", ink: "#e8edf3", soft: "#a5b1bf", line: "#303b48",
    edge: "#7e8b99", danger: "#ff9a9e",
  },
} as const;

/** Custom properties of the stylesheet. */
export function palette(colour: string, isDark: boolean): Record<string, string> {
  const surface = SURFACES[isDark ? "dark" : "light"];
  const accent = parseColour(colour);
  // Links stand on both: a colour readable on the paper is readable on the card, not vice versa.
  const strong = readableOn(accent, parseColour(surface.paper));
  return {
    "--card": surface.card,
    "--paper": surface.paper,
    "--ink": surface.ink,
    "--soft": surface.soft,
    "--line": surface.line,
    "--edge": surface.edge,
    "--accent": css(accent),
    "--on-accent": css(inkOn(accent)),
    "--strong": css(strong),
    "--on-strong": css(inkOn(strong)),
    "--danger": surface.danger,
  };
}
