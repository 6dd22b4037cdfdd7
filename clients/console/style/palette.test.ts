import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { projectRoot } from '../../../platform/process/root.js';

/** Least contrast of WCAG 2.2 for text. Thin curves need as much. */
const LEAST = 4.5;

const css = readFileSync(join(projectRoot(), 'clients/console/style/base.css'), 'utf8');
const [light = '', dark = ''] = css.split('@media (prefers-color-scheme: dark)');

const coloursOf = (text: string) =>
  new Map(
    [...text.matchAll(/--([\w-]+): (#[0-9a-f]{6});/g)].map(([, name = '', colour = '']) => [name, colour]),
  );

/** Relative luminance, 0 to 1. */
function luminance(colour: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
    const value = Number.parseInt(colour.slice(at, at + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(one: string, other: string): number {
  const [darker = 0, lighter = 0] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (lighter + 0.05) / (darker + 0.05);
}

for (const [scheme, text] of Object.entries({ light, dark }))
  t.test(`curves are seen on a ${scheme} card`, async (t) => {
    const colours = coloursOf(text);
    const curves = [...colours].filter(([name]) => name.startsWith('curve-'));
    t.equal(curves.length, 8);
    t.equal(new Set(curves.map(([, colour]) => colour)).size, 8);
    for (const [name, colour] of curves) {
      const found = contrast(colour, colours.get('card') ?? '');
      t.ok(found >= LEAST, `${name} has ${found.toFixed(2)} : 1`);
    }
  });
